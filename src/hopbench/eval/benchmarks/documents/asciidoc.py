"""Read AsciiDoc: what documentation uses of it, as Asciidoctor shows it. Includes are left out; every branch stays.

Source: https://docs.asciidoctor.org/asciidoc/latest/. No library serves: `asciidoc` runs programs and knows the old
syntax only, `asciidoctrine` needs seconds for a page, `pyasciidoc` knows a few constructs.
"""

from __future__ import annotations

import re
from collections import Counter
from html import escape

from hopbench.eval.benchmarks.documents._asciidoc_inline import Inline
from hopbench.eval.benchmarks.documents._asciidoc_tables import table_html
from hopbench.eval.benchmarks.documents.converted import read_converted
from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.front_matter import split_front_matter

NESTING_LIMIT = 60  # levels of blocks within blocks

_CONDITION = re.compile(r"(?:ifdef|ifndef|ifeval|endif)::[^\[\s]*\[(.*)\]\s*\Z")
_INCLUDE = re.compile(r"include::([^\[\]]+)\[[^\]]*\]\s*\Z")
_ESCAPED = re.compile(r"\\(?:include|ifdef|ifndef|ifeval|endif)::")
_ENTRY = re.compile(r":(!?)([\w][\w-]*)(!?):(?:[ \t]+(.*))?\Z")
_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?\Z")
_ANCHOR = re.compile(r"\[\[([\w:][\w:.-]*)(?:,[^\]]*)?\]\]")
_ATTRIBUTES = re.compile(r"\[(?:|[\w.#\"'%,].*)\]\Z")
_NAMED = re.compile(r"\s*(?:([\w-]+)\s*=\s*)?(\"[^\"]*\"|'[^']*'|[^,\"']*)\s*(?:,|\Z)")
_STYLE = re.compile(r"([#.%]?)([^#.%]+)")
_FENCE = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|--|/{4,})\Z|(```)([\w+-]*)\Z|([|!,:]={3,})\Z")
_ITEM = re.compile(
    r"\s*(?:(?:\*{1,5}|-|\.{1,5}|\d{1,9}\.|[a-zA-Z]\.|[ivxIVX]{1,8}\))[ \t]+(?=\S)|(?=<(?:\d+|\.)>[ \t]))(.*)\Z"
)
_TERM = re.compile(r"\s*([^\s/].*?)(?::{2,4}|;;)(?:[ \t]+(\S.*))?\Z")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]")
_ADMONITIONS = frozenset({"NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"})
_VERBATIM = frozenset({"source", "listing", "literal", "stem", "latexmath", "asciimath"})
_MEDIA = re.compile(r"(image|video|audio)::([^\[\s]*)\[(.*)\]\Z")
_DROPPED = re.compile(r"toc::\[.*\]\Z|<<<\Z|'{3,}\Z|-{3}\Z|\*{3}\Z")
_AUTHORS = re.compile(r"[^\s=:\[|*./\\-].*\Z")
_NOT_ID = re.compile(r"[^\w .-]")
_SEPARATORS = re.compile(r"[ .-]+")
_TAG = re.compile(r"<[^>]*>")
Style = dict[str, str]


def read_asciidoc(text: str) -> Document:
    """Read the sections by heading, with their own ids or those of Asciidoctor; the title is that of level 0."""
    front, body = split_front_matter(text)
    page = _Page(re.split(r"\r\n?|\n", body))
    if front.fields:
        page.left_out.append(("front matter", front.fields))
    remarks = (f"its front matter {front.fault} and is read as text: correct it",) if front.fault else ()
    return read_converted(page.html, page.left_out, title=front.title, remarks=remarks)


class _Page:
    def __init__(self, lines: list[str]) -> None:
        self.left_out: list[tuple[str, str]] = []
        self._inline, self._ids, self._depth = Inline(), Counter[str](), 0
        self._out: list[str] = []
        self._blocks(self._header(self._preprocessed(lines)))
        self.html = self._inline.with_titles("\n".join(self._out))

    def _preprocessed(self, lines: list[str]) -> list[str]:
        """Drop the conditions around lines, but not the lines; leave out what is included from other files."""
        made = []
        for line in lines:
            if found := _CONDITION.match(line):
                if found[1] and line.startswith("if") and not line.startswith("ifeval"):
                    made.append(found[1])
            elif found := _INCLUDE.match(line):
                self.left_out.append(("included files", found[1]))
            else:
                made.append(line[1:] if _ESCAPED.match(line) else line)
        return made

    def _header(self, lines: list[str]) -> list[str]:
        """Leave out the lines about author and revision below the title."""
        begin = next((at for at, line in enumerate(lines) if line.startswith("= ")), None)
        if begin is None or any(line and not line.startswith((":", "//", "[")) for line in lines[:begin]):
            return lines
        at = begin + 1
        while at < len(lines) and at < begin + 3 and _AUTHORS.match(lines[at]):
            self.left_out.append(("lines about author and revision", lines[at]))
            at += 1
        return [*lines[: begin + 1], *lines[at:]]

    def _blocks(self, lines: list[str]) -> None:
        self._depth += 1
        if self._depth > NESTING_LIMIT:
            raise UnreadableError(f"nests blocks over {NESTING_LIMIT} levels deep: write it flatter")
        at, style = 0, Style()
        while at < len(lines):
            line = lines[at].rstrip()
            if not line or line == "+" or _DROPPED.match(line):
                at += 1
            elif line.startswith("//") and not line.startswith("///"):
                self.left_out.append(("comments", line[2:]))
                at += 1
            elif found := _ENTRY.match(line):
                at = self._entry(found, lines, at)
            elif self._about(line, style):
                at += 1
            else:
                at = self._block(lines, at, line, style)
                style = Style()
        self._depth -= 1

    def _entry(self, found: re.Match[str], lines: list[str], at: int) -> int:
        """Set or unset an attribute; a value goes on after a line that ends in a backslash."""
        value = found[4] or ""
        while value.endswith("\\") and at + 1 < len(lines):
            at += 1
            value = f"{value[:-1].removesuffix(' +').rstrip()} {lines[at].strip()}"
        name = found[2].lower()
        if found[1] or found[3]:
            self._inline.attributes.pop(name, None)
        else:
            self._inline.attributes[name] = self._inline.filled(value.strip())
            self.left_out.append(("attributes of the page", value))
        return at + 1

    def _about(self, line: str, style: Style) -> bool:
        """Take a line that says something of the block below: an id, attributes, a title."""
        if (found := _ANCHOR.fullmatch(line)) is not None:
            style["id"] = found[1]
        elif _ATTRIBUTES.match(line) and not line.startswith("[["):
            style.update(_attributes(self._inline.filled(line[1:-1])))
        elif line.startswith(".") and len(line) > 1 and line[1] not in ". \t":
            style["title"] = line[1:]
        else:
            return False
        return True

    def _block(self, lines: list[str], at: int, line: str, style: Style) -> int:
        if (found := _TITLE.match(line)) and (not line.startswith("#") or style.get("1") != "source"):
            self._heading(found, style)
            return at + 1
        if identity := style.get("id"):
            self._write(f'<a id="{escape(identity)}"></a>')
        if found := _FENCE.match(line):
            return self._delimited(found, lines, at, style)
        if found := _MEDIA.match(line):
            self._caption(style)
            self._write(f"<p>{self._inline.html(f'image:{found[2]}[{found[3]}]')}</p>")
            return at + 1
        if line[0] in " \t" and not _ITEM.match(line) and not _TERM.match(line):
            end = next((place for place in range(at, len(lines)) if not lines[place].strip()), len(lines))
            self._code(lines[at:end], style)
            return end
        return self._paragraph(lines, at, style)

    def _heading(self, found: re.Match[str], style: Style) -> None:
        words, identity = found[2], style.get("id", "")
        for anchor in _ANCHOR.finditer(words):
            identity = identity or anchor[1]
        words = self._inline.html(_ANCHOR.sub("", words))
        identity = identity or self._identity(_TAG.sub("", words))
        self._inline.titles.setdefault(identity, words)
        level = len(found[1])
        self._write(f'<h{level} id="{escape(identity)}">{words}</h{level}>')
        self._notes()

    def _identity(self, words: str) -> str:
        """The id that Asciidoctor gives a section."""
        given = self._inline.attributes
        prefix, separator = given.get("idprefix", "_"), given.get("idseparator", "_")[:1]
        plain = _NOT_ID.sub("", re.sub(r"&#?\w+;", "", words.lower())).strip()
        name = prefix + _SEPARATORS.sub(separator, plain).strip(separator or " ")
        self._ids[name] += 1
        return name if self._ids[name] == 1 else f"{name}{separator}{self._ids[name]}"

    def _delimited(self, found: re.Match[str], lines: list[str], at: int, style: Style) -> int:
        fence = lines[at].rstrip()
        close = "```" if found[2] else fence
        end = next((place for place in range(at + 1, len(lines)) if lines[place].rstrip() == close), len(lines))
        inside = lines[at + 1 : end]
        name = style.get("1", "")
        if fence[0] == "/":
            self.left_out.append(("comments", " ".join(inside)))
        elif found[4]:
            self._caption(style)
            self._write(table_html(inside, fence[0], style, self._inline, self._cell))
        elif found[2] or (fence[0] in "-." and fence != "--") or name in _VERBATIM:
            self._code(inside, {**style, "2": found[3]} if found[3] else style)
        elif fence[0] == "+":
            self._write("\n".join(inside))
        elif name == "comment":
            self.left_out.append(("comments", " ".join(inside)))
        else:
            if name in _ADMONITIONS:
                self._write(f"<p>{name}</p>")
            self._caption(style)
            self._blocks(inside)
        return end + 1

    def _cell(self, text: str) -> str:
        """Write a table's cell that holds blocks."""
        outer, self._out = self._out, []
        self._blocks(text.split("\n"))
        inner, self._out = self._out, outer
        return "\n".join(inner)

    def _code(self, lines: list[str], style: Style) -> None:
        self._caption(style)
        text = "\n".join(lines)
        if "attributes" in style.get("subs", "") or style.get("subs") in ("normal", "a"):
            text = self._inline.filled(text)
        language = style.get("language") or (style.get("2", "") if style.get("1", "source") == "source" else "")
        if not language and style.get("1") == "source":
            language = self._inline.attributes.get("source-language", "")
        marked = f' class="language-{escape(language)}"' if language else ""
        self._write(f"<pre><code{marked}>{escape(text)}</code></pre>")

    def _paragraph(self, lines: list[str], at: int, style: Style) -> int:
        """Write a paragraph, an item of a list, or a term with its meaning."""
        first = lines[at].strip()
        item = _ITEM.match(lines[at])
        term = None if item else _TERM.match(lines[at])
        if term and "://" not in term[1][-8:] and not first.startswith(("image:", "xref:", "link:")):
            self._caption(style)
            self._text("dt", term[1])
            listed, words = "dd", [term[2]] if term[2] else []
        else:
            listed, words = ("li", [item[1]]) if item else ("", [first])
        end = at + 1
        if listed == "dd" and not words:
            end = next((place for place in range(end, len(lines)) if lines[place].strip()), end)
        while end < len(lines) and self._goes_on(lines[end].rstrip(), listed):
            if not lines[end].startswith("//"):
                words.append(lines[end].strip())
            else:
                self.left_out.append(("comments", lines[end][2:]))
            end += 1
        if style.get("1") in _VERBATIM:
            self._code(lines[at:end], style)
            return end
        name = style.get("1", "")
        if words or listed != "dd":
            self._caption(style)
            text = " ".join(word.removesuffix(" +") for word in words)
            self._text(listed or "p", f"{name}: {text}" if name in _ADMONITIONS else text)
        return end

    @staticmethod
    def _goes_on(line: str, listed: str) -> bool:
        """Whether a line belongs to the paragraph above it."""
        if not line.strip() or _FENCE.match(line) or _ATTRIBUTES.match(line) or _ANCHOR.fullmatch(line):
            return False
        return not listed or not (line.strip() == "+" or _ITEM.match(line) or _TERM.match(line))

    def _caption(self, style: Style) -> None:
        if title := style.pop("title", ""):
            self._text("p", title)

    def _text(self, tag: str, text: str) -> None:
        self._write(f"<{tag}>{self._inline.html(text)}</{tag}>")
        self._notes()

    def _notes(self) -> None:
        while self._inline.notes:
            note = self._inline.notes.pop(0)
            self._write(f"<p>{note}</p>")

    def _write(self, markup: str) -> None:
        self._out.append(markup)


def _attributes(text: str) -> Style:
    """Read the list in brackets above a block: style, id, and values by position or name."""
    made, position = Style(), 0
    for name, quoted in _NAMED.findall(text):
        value = quoted.strip().strip("\"'")
        if name:
            made[name] = value
            continue
        position += 1
        if position == 1:
            for mark, part in _STYLE.findall(value):
                key = {"#": "id", ".": "role", "%": "options"}.get(mark, "1")
                made[key] = f"{made[key]},{part}" if key == "options" and key in made else part
        elif value:
            made[str(position)] = value
    if "options" in made or "opts" in made:
        made["options"] = f"{made.get('options', '')},{made.pop('opts', '')}"
    if made.get("2") and "1" not in made:
        made["1"] = "source"
    return made

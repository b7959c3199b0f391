"""Read Markdown and MDX by markdown-it-py: CommonMark, tables, footnotes, definition lists, containers of sites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks.documents.components import OUTLINE_TAGS, TAG, Components, Tag, read_tag
from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.elements import Event
from hopbench.eval.benchmarks.documents.front_matter import split_front_matter
from hopbench.eval.benchmarks.documents.html import html_events
from hopbench.eval.benchmarks.documents.markup import Block, Page, outline
from hopbench.eval.types import Omission

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

NESTING_LIMIT = 60  # levels; the parser leaves out what is deeper
BRACKET_LIMIT = 10_000  # of a block that is parsed: each takes some 0.1 ms, as it may begin a link
_ATTRIBUTE = r"""(?:[#.][^\s{}]+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s{}"']+))"""
_ATTRIBUTE_LIST = rf"\{{:?\s*({_ATTRIBUTE}(?:\s+{_ATTRIBUTE})*)\s*\}}"
_HEADING_ATTRIBUTES = re.compile(rf"(?<!\\){_ATTRIBUTE_LIST}\s*\Z")  # {{ #id .class }}
_BLOCK_ATTRIBUTES = re.compile(rf"(?:\A|\n)[ \t]*{_ATTRIBUTE_LIST}\s*\Z")
_INLINE_ATTRIBUTES = re.compile(_ATTRIBUTE_LIST)
_TAKE_ATTRIBUTES = frozenset(("link_close", "image", "code_inline", "em_close", "strong_close"))
_FOOTNOTE = re.compile(r"\s?\[\^([^\]\s]{1,100})\]")
_NOTE_USE = re.compile(r"\[\^([^\]\s]{1,100})\](?!:)")
_ALERT = re.compile(r"\[!([A-Za-z][\w-]*)\][+-]?[ \t]*([^\n]*)(?:\n|\Z)")
_QUOTE_MARKS = re.compile(r"[\s>]*")
_IMPORTS_FIRST = re.compile(r"""\s*(?:#[^\n]*\n\s*)?import\s[^\n]*?(?:\sfrom\s+)?["'][^"'\n]+["'];?[ \t]*(?:\n|\Z)""")
_PLACEHOLDER = re.compile(r"\{\*.+?\*\}|\{!.+?!\}|-+8<-+[^\n]*|\{\{.+?\}\}|\{%.+?%\}|<<<[ \t]*@?[\w./~-]+|^::: *[\w.]+")
_INCLUDED_CODE = re.compile(r"^[ \t]*(?:-+8<-+[^\n]*|\{!.+?!\}|\{\*.+?\*\})[ \t]*$", re.MULTILINE)
PLACEHOLDERS = "variables, expressions and includes that a site fills in"
_CODE_TITLE = re.compile(r"""\b(?:title|filename|caption)=(?:"([^"]*)"|'([^']*)'|(\S+))""")
_CODE_OPTIONS = re.compile(r"""\{[^{}]*\}|\[[^\]]*\]|[\w-]+=(?:"[^"]*"|'[^']*'|\{\{.*?\}\}|\S+)|`+""")
_CODE_FLAGS = frozenset("copy expandable expanded linenums lines live nocopy showLineNumbers wrap".split())


def read_markdown(text: str) -> Document:
    """Read the sections by heading; the title is the front matter's, else the first heading's.

    A file that begins with an `import`, perhaps below its first heading, is MDX, whatever its name.
    """
    return _read(text, mdx=False)


def read_mdx(text: str) -> Document:
    """Read MDX: Markdown stands between the tags of components, and nothing indented is code."""
    return _read(text, mdx=True)


def _read(text: str, *, mdx: bool) -> Document:
    front, body = split_front_matter(text)
    source = _Source(body, mdx=mdx or _IMPORTS_FIRST.match(body) is not None)
    page = Page(list(source.events()))
    if front.fields:
        page.leave_out("front matter", " ".join(front.fields.split()[len(front.summary.split()) :]))
    for words in source.unused():
        page.leave_out("definitions of links that are not used", words)
    blocks = page.blocks
    first = next((block.text for block in blocks if block.level), "")
    title = front.title if front.title.strip() else first
    if front.summary:
        below = bool(blocks) and blocks[0].level > 0 and blocks[0].text == " ".join(title.split())
        blocks.insert(int(below), Block(front.summary, 0, False, 0, "", ()))
    remarks = (f"its front matter {front.fault} and is read as text: correct it",) if front.fault else ()
    return Document(title, outline(blocks), remarks, (*page.omissions, *source.placeholders()))


@cache
def _parser(*, mdx: bool) -> MarkdownIt:
    """Make a parser of blocks that leaves targets of links as they are written."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock, reference
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote.index import footnote_def

    from hopbench.eval.benchmarks.documents import markdown_rules

    def definition(state: StateBlock, line: int, end: int, silent: bool) -> bool:
        begin = state.bMarks[line] + state.tShift[line]
        return not state.src.startswith("[^", begin) and reference(state, line, end, silent)

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING_LIMIT}).enable("table").use(deflist_plugin)
    parser.core.ruler.disable("inline")
    parser.block.ruler.at("reference", definition)
    parser.block.ruler.before("reference", "footnote_def", footnote_def, {"alt": ["paragraph", "reference"]})
    markdown_rules.containers(parser)
    if mdx:
        markdown_rules.mdx(parser)
    for name, function in (("normalizeLink", str), ("normalizeLinkText", str), ("validateLink", lambda _: True)):
        setattr(parser, name, function)
    return parser


class _Source:
    """The tokens of a file as events; `mdx` decides how tags and braces are read."""

    def __init__(self, text: str, *, mdx: bool) -> None:
        self._parser, self._known, self._used = _parser(mdx=mdx), dict[str, Any](), set[str]()
        self._tokens = self._parser.parse(text, self._known)
        self._lines = re.split(r"\r\n?|\n", text)
        if any(token.level >= NESTING_LIMIT - 1 for token in self._tokens):
            raise UnreadableError(f"nests lists or quotes over {NESTING_LIMIT} levels deep: write it flatter")
        self._components = Components()
        self._placeholders: list[str] = []
        self._in_heading = False
        self._cells = 0
        self._row: Token | None = None
        self._note_tokens = self._tokens_of_notes() if "[^" in text else {}
        self._notes = dict(self._note_tokens)  # not written yet
        self._uses = set(_NOTE_USE.findall(text)) if self._notes else set[str]()
        self._noted: list[str] = []  # labels of the section's marks

    def events(self) -> Iterator[Event]:
        """The events in the order of the text; notes follow the section that first refers to them."""
        skip_to = 0
        for place, token in enumerate(self._tokens):
            if place < skip_to:
                continue
            if token.type == "footnote_reference_open":
                label = token.meta["label"]
                if place + 1 == self._note_tokens[label].start:
                    skip_to = self._note_tokens[label].stop
                    if label not in self._uses:
                        yield from self._note(label)
                continue
            if token.type == "heading_open" and token.level == 0:
                yield from self._section_notes()
            yield from self._token(place)
        yield from self._section_notes()
        for label in list(self._notes):
            yield from self._note(label)

    def _tokens_of_notes(self) -> dict[str, range]:
        """Label → the tokens of its note."""
        found: dict[str, range] = {}
        opened: list[tuple[str, int]] = []
        for place, token in enumerate(self._tokens):
            if token.type == "footnote_reference_open":
                opened.append((token.meta["label"], place))
            elif token.type == "footnote_reference_close":
                label, begin = opened.pop()
                if label not in found:
                    found[label] = range(begin + 1, place)
        return found

    def _section_notes(self) -> Iterator[Event]:
        while self._noted:
            yield from self._note(self._noted.pop(0))

    def _note(self, label: str) -> Iterator[Event]:
        """The events of a note, once, with its mark before it."""
        tokens = self._notes.pop(label, range(0))
        if not tokens:
            return
        yield from (Event("start", "p"), Event("text", f"[{label}]: "))
        in_line = self._tokens[tokens.start].type == "paragraph_open"
        for place in tokens[1:] if in_line else tokens:
            yield from self._token(place)

    def _token(self, place: int) -> Iterator[Event]:
        token = self._tokens[place]
        after = self._tokens[place + 1] if place + 1 < len(self._tokens) else None
        match token.type:
            case "inline":
                yield from self._text(token, place)
            case "fence" | "code_block":
                self._placeholders += _INCLUDED_CODE.findall(token.content)
                yield from (Event("start", "pre", {"code": _code_info(token.info)}), Event("text", token.content))
                yield Event("end", "pre")
            case "html_block":
                yield from self._raw(token.content, block=True)
            case "jsx":
                yield from self._tags(token.content, block=True)
            case "omission":
                yield Event("comment", token.content, {"kind": token.info})
            case "container_title":
                yield Event("start", "p")
                yield from self._inline(token.content)
                yield Event("end", "p")
            case "td_open" | "th_open":
                self._cells += 1
                yield Event("start", token.tag)
            case "heading_open" if after is not None:
                yield self._heading(token, after)
            case _:
                if token.type == "tr_open":
                    self._row, self._cells = token, 0
                elif token.type == "tr_close" and self._row is not None:
                    yield from self._excess(self._row)
                self._in_heading &= token.type != "heading_close"
                yield Event("start" if token.nesting >= 0 else "end", token.tag)

    def _heading(self, token: Token, text: Token) -> Event:
        anchor = ""
        if attributes := _HEADING_ATTRIBUTES.search(text.content):
            text.content = text.content[: attributes.start()].rstrip()
            anchor = next((one[1:] for one in attributes[1].split() if one.startswith("#")), "")
        self._in_heading = True
        return Event("start", token.tag, {"anchor": anchor})

    def _text(self, token: Token, place: int) -> Iterator[Event]:
        """A block's text, without attributes of the block; in a quote's first line `[!NOTE]` is its title."""
        text = token.content
        if text.startswith("[!") and place > 1 and self._tokens[place - 2].type == "blockquote_open":
            alert = _ALERT.match(text)
            if alert is not None:
                yield from self._inline(alert[2].strip() or alert[1].capitalize())
                yield Event("start", "p")
                text = text[alert.end() :]
        if text.endswith("}") and (attributes := _BLOCK_ATTRIBUTES.search(text)):
            text = text[: attributes.start()]
        yield from self._inline(text)

    def unused(self) -> list[str]:
        """List the words of the link definitions that no link or image uses."""
        definitions = self._known.get("references", {}).items()
        again = [one["title"] for one in self._known.get("duplicate_refs", ())]
        return [f"{name} {one['title']}" for name, one in definitions if one["href"] not in self._used] + again

    def placeholders(self) -> tuple[Omission, ...]:
        """Count what stands in the text as it is written and a site's generator would replace."""
        words = len(" ".join(self._placeholders).split())
        count = len(self._placeholders)
        return (Omission(PLACEHOLDERS, count, words, in_text=True),) if count else ()

    def _excess(self, row: Token) -> Iterator[Event]:
        """The cells of a row beyond the table's columns, which the parser drops."""
        from markdown_it.rules_block.table import escapedSplit

        line = _QUOTE_MARKS.sub("", self._lines[row.map[0]], count=1).strip() if row.map else ""
        line = line.removeprefix("|").removesuffix("|")
        written = escapedSplit(line) if line.count("|") >= self._cells else []
        for cell in written[self._cells :]:
            if cell.strip():
                yield Event("start", "td")
                yield from self._inline(cell.strip())
                yield Event("end", "td")

    def _inline(self, text: str) -> Iterator[Event]:
        """A block's text, as it is where it would take too long."""
        if text.count("[") > BRACKET_LIMIT:
            yield Event("text", text)
            return
        children: list[Token] = []
        self._parser.inline.parse(text, self._parser, self._known, children)
        before = ""
        for token in children:
            match token.type:
                case "text" | "text_special":
                    yield Event("text", self._plain(token.content, before))
                case "code_inline":
                    yield from (Event("start", "code"), Event("text", token.content), Event("end", "code"))
                case "softbreak" | "hardbreak":
                    yield Event("text", " ")
                case "html_inline":
                    yield from self._raw(token.content, block=False)
                case "jsx_inline":
                    yield from self._tags(token.content, block=False)
                case "expression":
                    yield self._expression(token.content)
                case "image":
                    self._used.add(str(token.attrs["src"]))
                    yield Event("start", "img", {"alt": _alternative(token.children or ())})
                case "link_open":
                    self._used.add(str(token.attrs["href"]))
                    yield Event("start", "a", {"href": str(token.attrs["href"])})
                case "link_close":
                    yield Event("end", "a")
            before = token.type

    def _plain(self, text: str, before: str) -> str:
        """A text without attributes of the element before it, with the marks of notes as they are in HTML."""
        if before in _TAKE_ATTRIBUTES and text.startswith("{") and (found := _INLINE_ATTRIBUTES.match(text)):
            text = text[found.end() :]
        if "{" in text or "8<" in text or "<<<" in text or ":::" in text:
            self._placeholders += _PLACEHOLDER.findall(text)
        if "[^" not in text:
            return text
        self._noted += [label for label in _FOOTNOTE.findall(text) if label in self._notes]
        return _FOOTNOTE.sub(r" [\1]", text)

    def _expression(self, text: str) -> Event:
        inner = text[1:-1].strip()
        if inner.startswith("/*") and inner.endswith("*/"):
            return Event("comment", inner[2:-2])
        if inner[:1] in ("'", '"', "`") and inner[-1:] == inner[:1] and len(inner) > 1:
            return Event("text", inner[1:-1])
        self._placeholders.append(text)
        return Event("text", text)

    def _tags(self, text: str, *, block: bool) -> Iterator[Event]:
        """The events of tags of JSX, one after the other."""
        for found in TAG.finditer(text):
            if tag := read_tag(found[0]):
                yield from self._components.events(tag, block=block or self._parts(tag))

    def _raw(self, markup: str, *, block: bool) -> Iterator[Event]:
        """The events of HTML inside Markdown; the outline is that of the Markdown, and a line break parts words."""
        for event in html_events(markup):
            if event.kind not in ("start", "end"):
                yield event
            elif event.value in OUTLINE_TAGS:
                yield event._replace(value="div")
            elif event.value == "br":
                yield from [Event("text", " ")] * (event.kind == "start")
            else:
                tag = Tag(event.value, event.attributes, end=event.kind == "end")
                yield from self._components.events(tag, block=block or self._parts(tag))

    def _parts(self, tag: Tag) -> bool:
        """Whether a component within a line begins a block: one with a title does, but in a heading."""
        return bool(tag.attributes.get("title")) and not self._in_heading


def _code_info(info: str) -> str:
    """The language and the title of a code block: `python app.py`, without options."""
    named = _CODE_TITLE.search(info)
    title = next((one for one in named.groups() if one), "") if named else ""
    braces = info.strip().startswith("{")
    words = (_CODE_OPTIONS.sub(" ", info) if not braces else re.sub(r"[{}]|[\w-]+=\S+", " ", info)).split()
    if braces:
        words = words[:1]
    shown = [words[0].lstrip(".").rstrip(":,"), *(one for one in words[1:] if one not in _CODE_FLAGS)] if words else []
    return " ".join([*shown, *([title] if title else [])])


def _alternative(tokens: Sequence[Token]) -> str:
    """The words of an image, which are tokens as those of a text are."""
    return "".join(
        _alternative(token.children or ()) if token.type == "image" else token.content or " " for token in tokens
    )

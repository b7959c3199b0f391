"""Read Markdown, with or without front matter, by markdown-it-py (CommonMark and tables)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.html import html_events
from hopbench.eval.benchmarks.documents.markup import HEADINGS, Event, Page, outline
from hopbench.retrieval.support.input_files import YamlError, parse_yaml

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")


def split_front_matter(text: str) -> tuple[str, str, str, str]:
    """Split a file into its title as it is written, the fields' text, the rest, and why the fields cannot be read.

    What are no named fields stays in the text, with the reason where it is broken YAML or TOML. A `---` before a blank
    line is a rule, as in Pandoc, unless a title stands below it.
    """
    found = _FRONT_MATTER.match(text)
    if not found:
        return "", "", text, ""
    fields, yaml = found[2], found[1] == "---"
    try:
        facts = parse_yaml(fields, "front matter") if yaml else tomllib.loads(fields)
    except YamlError as error:
        return "", "", text, f"is not YAML ({error.problem}, line {error.line + 1})"
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return "", "", text, f"is not TOML ({error}, counted from line 2)"
    if not isinstance(facts, dict) or ("title" not in facts and _BLANK_LINE.match(fields)):
        return "", "", text, ""
    title = facts.get("title")
    if title is None or isinstance(title, dict | list):
        title = ""
    elif not isinstance(title, str):  # a number, date or boolean: as the file has it
        title = (
            _yaml_title(fields, str(title)) if yaml else str(title).lower() if isinstance(title, bool) else str(title)
        )
    return title, fields, text[found.end() :], ""


def _yaml_title(fields: str, default: str) -> str:
    from yaml import MappingNode, SafeLoader, ScalarNode, compose

    root = compose(fields, SafeLoader)
    for key, value in root.value if isinstance(root, MappingNode) else ():
        if key.value == "title" and isinstance(value, ScalarNode):
            return str(value.value)
    return default


NESTING_LIMIT = 60  # levels; the parser leaves out what is deeper
BRACKET_LIMIT = 10_000  # of a block that is parsed: each takes some 0.1 ms, as it may begin a link
_ATTRIBUTE = r"""(?:[#.][^\s{}]+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s{}"']+))"""
_ATTRIBUTES = re.compile(
    rf"(?<!\\)\{{:?\s*({_ATTRIBUTE}(?:\s+{_ATTRIBUTE})*)\s*\}}\s*\Z"
)  # of a heading: {{ #id .class }}
_FOOTNOTE = re.compile(r"\s?\[\^([^\]\s]{1,100})\]")
_QUOTE_MARKS = re.compile(r"[\s>]*")
_OWN_TAGS = frozenset({*HEADINGS, "title", "main", "article"})  # of raw HTML: the outline is that of the Markdown


def read_markdown(text: str) -> Document:
    """Read the sections by heading; the title is the front matter's, else the first heading's."""
    title, fields, body, fault = split_front_matter(text)
    source = _Source(body)
    page = Page(list(source.events()))
    if fields:
        page.leave_out("front matter", fields)
    for words in source.unused():
        page.leave_out("definitions of links that are not used", words)
    blocks = page.blocks
    first = next((block.text for block in blocks if block.level), "")
    remarks = (f"its front matter {fault} and is read as text: correct it",) if fault else ()
    return Document(title if title.strip() else first, outline(blocks), remarks, page.omissions)


def _parser() -> MarkdownIt:
    """Make a parser of blocks that leaves targets of links as they are written, and footnotes in the text."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock, reference

    def definition(state: StateBlock, line: int, end: int, silent: bool) -> bool:
        begin = state.bMarks[line] + state.tShift[line]
        return not state.src.startswith("[^", begin) and reference(state, line, end, silent)

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING_LIMIT}).enable("table")
    parser.core.ruler.disable("inline")
    parser.block.ruler.at("reference", definition)
    for name, function in (("normalizeLink", str), ("normalizeLinkText", str), ("validateLink", lambda _: True)):
        setattr(parser, name, function)
    return parser


class _Source:
    def __init__(self, text: str) -> None:
        self._parser, self._known, self._used = _parser(), dict[str, Any](), set[str]()
        self._tokens = self._parser.parse(text, self._known)
        self._lines = re.split(r"\r\n?|\n", text)
        if any(token.level >= NESTING_LIMIT - 1 for token in self._tokens):
            raise UnreadableError(f"nests lists or quotes over {NESTING_LIMIT} levels deep: write it flatter")

    def events(self) -> Iterator[Event]:
        cells = 0
        row: Token | None = None
        for token, after in zip_longest(self._tokens, self._tokens[1:]):
            if token.type == "inline":
                yield from self._inline(token.content)
            elif token.type in ("fence", "code_block"):
                yield from (Event("start", "pre"), Event("text", token.content), Event("end", "pre"))
            elif token.type == "html_block":
                yield from _raw(token.content)
            elif token.type == "heading_open" and after is not None:
                anchor = ""
                if attributes := _ATTRIBUTES.search(after.content):
                    after.content = after.content[: attributes.start()].rstrip()
                    anchor = next((one[1:] for one in attributes[1].split() if one.startswith("#")), "")
                yield Event("start", token.tag, {"anchor": anchor})
            elif token.type in ("td_open", "th_open"):
                cells += 1
                if after is not None and after.content:
                    yield Event("start", token.tag)
            else:
                if token.type == "tr_open":
                    row, cells = token, 0
                elif token.type == "tr_close" and row is not None:
                    yield from self._excess(row, cells)
                yield Event("start" if token.nesting >= 0 else "end", token.tag)

    def unused(self) -> list[str]:
        """List the words of the link definitions that no link or image uses."""
        definitions = self._known.get("references", {}).items()
        again = [one["title"] for one in self._known.get("duplicate_refs", ())]
        return [f"{name} {one['title']}" for name, one in definitions if one["href"] not in self._used] + again

    def _excess(self, row: Token, cells: int) -> Iterator[Event]:
        """The cells of a row beyond the table's columns, which the parser drops."""
        from markdown_it.rules_block.table import escapedSplit

        line = _QUOTE_MARKS.sub("", self._lines[row.map[0]], count=1).strip() if row.map else ""
        line = line.removeprefix("|").removesuffix("|")
        written = escapedSplit(line) if line.count("|") >= cells else []
        for cell in written[cells:]:
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
        for token in children:
            match token.type:
                case "text" | "text_special":
                    yield Event("text", _FOOTNOTE.sub(r" [\1]", token.content))
                case "code_inline":
                    yield Event("text", token.content)
                case "softbreak" | "hardbreak":
                    yield Event("text", " ")
                case "html_inline":
                    yield from _raw(token.content)
                case "image":
                    self._used.add(str(token.attrs["src"]))
                    yield Event("start", "img", {"alt": _alternative(token.children or ())})
                case "link_open":
                    self._used.add(str(token.attrs["href"]))
                    yield Event("start", "a", {"href": str(token.attrs["href"])})
                case "link_close":
                    yield Event("end", "a")


def _alternative(tokens: Sequence[Token]) -> str:
    """The words of an image, which are tokens as those of a text are."""
    return "".join(
        _alternative(token.children or ()) if token.type == "image" else token.content or " " for token in tokens
    )


def _raw(markup: str) -> Iterator[Event]:
    """The events of HTML inside Markdown; the outline is that of the Markdown alone, and a line break parts words."""
    for event in html_events(markup):
        if event.kind in ("start", "end") and event.value in _OWN_TAGS:
            yield event._replace(value="div")
        else:
            yield Event("text", " ") if event.value == "br" and event.kind == "start" else event

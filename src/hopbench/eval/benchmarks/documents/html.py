"""HTML, read event by event with Python's own parser: no tree is built, so that nesting costs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import compress

from hopbench.eval.benchmarks.documents.document import Document, Outline, Section, UnreadableError, decode
from hopbench.eval.benchmarks.documents.markup import Block, Event, Page

_NONE: Mapping[str, str] = {}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


def decode_html(content: bytes) -> tuple[str, str]:
    """As `decode`, with the encoding that a `<meta charset>` in the first 4 KiB declares."""
    found = _CHARSET.search(content[:4096])
    return decode(content, found[1].decode("ascii", errors="replace") if found else "")


def read_html(text: str) -> Document:
    """The sections of `<main>`, else of the only `<article>`, else of the whole page, by heading.

    The title is the first heading of level 1, else `<title>`, else the first heading.
    """
    page = Page(html_events(text))
    content, others = _content(page.blocks)
    for block in others:
        page.leave_out("text outside the main content", block.text)
    headings = [block for block in content if block.level]
    top = next((block.text for block in headings if block.level == 1), "")
    if top and page.title not in ("", top):
        page.leave_out("page titles other than the heading", page.title)
    title = top or page.title or (headings[0].text if headings else "")
    return Document(title, outline(content), omissions=page.omissions)


def _content(blocks: Sequence[Block]) -> tuple[list[Block], list[Block]]:
    """The blocks of the main content, and the others."""
    belongs = [block.in_main for block in blocks]
    if not any(belongs) and len({block.article for block in blocks if block.article}) == 1:
        belongs = [block.article > 0 for block in blocks]
    if not any(belongs):
        return list(blocks), []
    return list(compress(blocks, belongs)), [block for block, own in zip(blocks, belongs, strict=True) if not own]


def outline(blocks: Sequence[Block]) -> list[Section]:
    """The sections that blocks make."""
    made = Outline()
    for block in blocks:
        if block.level:
            made.heading(block.level, block.text, block.anchor, block.links)
        else:
            made.paragraph(block.text, block.links)
    return made.sections()


def html_events(markup: str) -> list[Event]:
    """The tags, texts and comments of a page, or of a piece of HTML inside a Markdown file."""
    parser = _Parser()
    try:
        parser.feed(_closed(markup))
        parser.close()
    except AssertionError as error:  # how the parser refuses declarations that no HTML has
        raise UnreadableError(f"is no HTML ({error}): export it again") from error
    return parser.events


class _Parser(HTMLParser):
    """Collects events."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.events: list[Event] = []

    def updatepos(self, i: int, j: int) -> int:
        """Skip counting lines, which are not used."""
        return j

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a start tag; of attributes given twice the first counts."""
        self.events.append(
            Event("start", tag, {name: value or "" for name, value in reversed(attrs)} if attrs else _NONE)
        )

    def handle_endtag(self, tag: str) -> None:
        """Note an end tag."""
        self.events.append(Event("end", tag))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.events.append(Event("text", data))

    def handle_comment(self, data: str) -> None:
        """Note a comment."""
        self.events.append(Event("comment", data))

    def handle_pi(self, data: str) -> None:
        """Note a processing instruction, such as PHP, as a comment."""
        self.events.append(Event("comment", data))

    def unknown_decl(self, data: str) -> None:
        """Note the text of a CDATA section; other declarations are comments."""
        text = data.removeprefix("CDATA[")
        self.events.append(Event("text" if text != data else "comment", text))


def _closed(text: str) -> str:
    """The text with what is never closed taken as words: the parser would look for each end again and again."""
    before, end, after = text.rpartition("-->")
    text = before + end + after.replace("<!--", "")
    before, end, after = text.rpartition(">")
    return before + end + after.replace("<", "&lt;")

"""Read HTML event by event with Python's own parser: no tree is built, so that nesting costs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser

from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.markup import Event, Page, outline

_NONE: Mapping[str, str] = {}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


def declared_encoding(content: bytes) -> str:
    """Return the encoding that a `<meta charset>` in the first 4 KiB declares; empty without one."""
    found = _CHARSET.search(content[:4096])
    return found[1].decode("ascii", errors="replace") if found else ""


def read_html(text: str) -> Document:
    """Read the sections of `<main>`, else of the only `<article>`, else of the whole page, by heading.

    The title is the first heading of level 1, else `<title>`, else the first heading.
    """
    page = Page(html_events(text))
    blocks = page.blocks
    in_main = any(block.in_main for block in blocks)
    one_article = len({block.article for block in blocks if block.article}) == 1
    content = []
    for block in blocks:
        if block.in_main if in_main else block.article or not one_article:
            content.append(block)
        else:
            page.leave_out("text outside the main content", block.text)
    headings = [block for block in content if block.level]
    top = next((block.text for block in headings if block.level == 1), "")
    if top and page.title not in ("", top):
        page.leave_out("page titles other than the heading", page.title)
    title = top or page.title or (headings[0].text if headings else "")
    return Document(title, outline(content), omissions=page.omissions)


def html_events(markup: str) -> list[Event]:
    """List the tags, texts and comments of a page, or of a piece of HTML inside a Markdown file."""
    parser = _Parser()
    try:
        parser.feed(_closed(markup))
        parser.close()
    except AssertionError as error:  # how the parser refuses declarations that no HTML has
        raise UnreadableError(f"is no HTML ({error}): export it again") from error
    return parser.events


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.events: list[Event] = []

    def updatepos(self, i: int, j: int) -> int:
        return j  # lines are not counted

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Of attributes given twice the first counts.
        given = {name: value or "" for name, value in reversed(attrs)} if attrs else _NONE
        self.events.append(Event("start", tag, given))

    def handle_endtag(self, tag: str) -> None:
        self.events.append(Event("end", tag))

    def handle_data(self, data: str) -> None:
        self.events.append(Event("text", data))

    def handle_comment(self, data: str) -> None:
        self.events.append(Event("comment", data))

    handle_pi = handle_comment  # processing instructions, such as PHP

    def unknown_decl(self, data: str) -> None:
        text = data.removeprefix("CDATA[")
        self.events.append(Event("text" if text != data else "comment", text))


def _closed(text: str) -> str:
    """Take what is never closed as words: the parser would look for each end again and again."""
    before, end, after = text.rpartition("-->")
    text = before + end + after.replace("<!--", "")
    before, end, after = text.rpartition(">")
    return before + end + after.replace("<", "&lt;")

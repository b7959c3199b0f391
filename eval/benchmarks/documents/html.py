"""HTML, read event by event with Python's own parser: no tree is built, so that nesting costs nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.decode import decode
from hopbench.eval.benchmarks.documents.document import Document, Outline, UnreadableError

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form
    head header hr html legend li main nav ol p pre section summary table tbody tfoot thead title tr ul""".split()
)
_SKIPPED = frozenset("script style template noscript svg nav iframe object select button".split())
_CONTENT = frozenset("body main article".split())
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def decode_html(content: bytes) -> tuple[str, str]:
    """As `decode`, with the encoding that a `<meta charset>` in the first 4 KiB declares."""
    found = _CHARSET.search(content[:4096])
    return decode(content, found[1].decode("ascii", errors="replace") if found else "")


def read_html(text: str) -> Document:
    """The sections of `<main>`, else of the only `<article>`, else of the whole page, by heading.

    Navigation, scripts and styles are left out. The title is the first heading of level 1, else `<title>`, else the
    first heading.
    """
    page = _parsed(text)
    blocks = page.blocks
    main = [block for block in blocks if block.in_main]
    if not main and len({block.article for block in blocks if block.article}) == 1:
        main = [block for block in blocks if block.article]
    outline = Outline()
    headings = []
    for block in main or blocks:
        if block.level:
            outline.heading(block.level, block.text)
            headings.append(block)
        else:
            outline.paragraph(block.text)
    top = next((block.text for block in headings if block.level == 1), "")
    return Document(top or page.title or (headings[0].text if headings else ""), outline.sections())


def text_of(markup: str) -> str:
    """The text of a piece of HTML inside a Markdown file."""
    return " ".join(block.text for block in _parsed(markup).blocks)


class _Block(NamedTuple):
    """Text between two block tags; `level` is 0 for a paragraph, `article` counts from 1, 0 outside of all."""

    text: str
    level: int
    in_main: bool
    article: int


class _Page(HTMLParser):
    """Collects blocks of text. A tag that is never closed ends with the file, or where content begins."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[_Block] = []
        self.title = ""
        self._words: list[str] = []
        self._level = self._main = self._skipped = self._articles = self._open_articles = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Begin a block, or what is skipped."""
        if tag in _BLOCKS or tag in _HEADINGS:
            self.flush()
        if tag in _CONTENT:
            self._skipped = 0
        self._skipped += tag in _SKIPPED
        self._level = _HEADINGS.get(tag, self._level)
        self._main += tag == "main"
        if tag == "article":
            self._articles += not self._open_articles
            self._open_articles += 1
        if tag in ("td", "th") and "".join(self._words).strip():
            self._words.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        """End a block, or what is skipped."""
        if tag == "title" and not self.title:
            self.title = self._taken()
        if tag in _BLOCKS or tag in _HEADINGS:
            self.flush()
        self._skipped -= tag in _SKIPPED and self._skipped > 0
        self._main -= tag == "main" and self._main > 0
        self._open_articles -= tag == "article" and self._open_articles > 0

    def handle_data(self, data: str) -> None:
        """Add text to the block that is open."""
        if not self._skipped:
            self._words.append(data)

    def flush(self) -> None:
        """End the block that is open."""
        if text := self._taken():
            article = self._articles if self._open_articles else 0
            self.blocks.append(_Block(text, self._level, self._main > 0, article))
        self._level = 0

    def _taken(self) -> str:
        words, self._words = "".join(self._words), []
        return _SURROGATE.sub(" ", " ".join(words.split()))


def _closed(text: str) -> str:
    """The text with what is never closed taken as words: the parser would look for each end again and again."""
    before, end, after = text.rpartition("-->")
    text = before + end + after.replace("<!--", "")
    before, end, after = text.rpartition(">")
    return before + end + after.replace("<", "&lt;")


def _parsed(text: str) -> _Page:
    page = _Page()
    try:
        page.feed(_closed(text))
        page.close()
    except AssertionError as error:  # how the parser refuses declarations that no HTML has
        raise UnreadableError(f"is no HTML ({error}): export it again") from error
    page.flush()
    return page

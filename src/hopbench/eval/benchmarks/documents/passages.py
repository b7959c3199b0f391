"""A document cut into passages with stable ids: by heading or page, then by length at paragraphs, sentences, words."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import PurePosixPath

from hopbench.eval.benchmarks.documents.document import Document, PlacedLink, Section, size
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import packed, spaced_sentences
from hopbench.retrieval.text import shortened
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Link, Passage, Source

PATH_LIMIT = 1000  # characters, so that an id with its section stays within the limit of 2,000
_SLUG_LIMIT = 100
_TITLE_LIMIT = 200
_NOT_SLUG = re.compile(r"[^\w\- ]")


def fault_of(path: str) -> str:
    """Why a path can name no passage; empty where it can."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8: rename it"
    if any(unicodedata.category(mark) == "Cc" for mark in path):
        return "its name holds a control character: rename it"
    return f"its path has over {PATH_LIMIT:,} characters: shorten it" if len(path) > PATH_LIMIT else ""


def document_id(path: str) -> str:
    """The path in its composed form: macOS writes an accent as a character of its own."""
    return unicodedata.normalize("NFC", path)


class PassageIds:
    """The ids of one document's passages, none twice.

    `guide.md` is the text up to the first heading, or under the heading that is the title; `guide.md#install` is a
    section, named by its own id, else as GitHub names it; `manual.pdf#page=3` a page; `&part=2` the second part of one
    that is too long.
    """

    def __init__(self, document: str) -> None:
        self._document = document
        self._used: Counter[str] = Counter()

    def section(self, section: Section, title: str) -> str:
        """The id of a section's first part."""
        if section.page is not None:
            return f"{self._document}#page={section.page}"
        if not section.headings or (section.headings == (title,) and not self._used[""]):
            self._used[""] += 1
            return self._document if self._used[""] == 1 else self._numbered("text")
        return self._numbered(_safe_anchor(section.anchor) or _slug(section.headings[-1]))

    def _numbered(self, slug: str) -> str:
        number = self._used[slug]
        self._used[slug] += 1
        name = f"{slug}-{number}" if number else slug
        if number and self._used[name]:
            return self._numbered(slug)
        self._used[name] += bool(number)
        return f"{self._document}#{name}"

    @staticmethod
    def part(first: str, index: int) -> str:
        """The id of a section's part, `index` from 0."""
        return first if not index else f"{first}{'&' if '#' in first else '#'}part={index + 1}"


def _safe_anchor(stated: str) -> str:
    """A heading's own id, without the marks by which pages and parts are named."""
    return stated[:_SLUG_LIMIT].replace("&", "-").replace("=", "-")


def _slug(heading: str) -> str:
    return _NOT_SLUG.sub("", heading.lower()).strip().replace(" ", "-")[:_SLUG_LIMIT] or "section"


def passage_title(section: Section, title: str) -> str:
    """`Install (Server guide)`: the section's heading with the headings above it as its qualifier.

    Entities are named by titles without their qualifier, and BM25 and embedders read both.
    """
    above = [title, *(heading for heading in section.headings[:-1] if heading != title)]
    own = section.headings[-1] if section.headings else title
    if own == title:
        return shortened(title, _TITLE_LIMIT)
    qualifier = re.sub(r"[()]", " ", ": ".join(above))
    return f"{shortened(own, _TITLE_LIMIT)} ({shortened(qualifier, _TITLE_LIMIT)})"


PASSAGE_TOKENS = Budget().tokens // Budget().chunks
"""Tokens of the longest passage (`count_tokens`), 300: as many as fit a reader's budget five times."""


_BRACKETS = re.compile(r"[()]")


def passages_of(document: Document, path: str, max_tokens: int = PASSAGE_TOKENS) -> Iterator[Passage]:
    """The passages of a document in reading order, none over `max_tokens`.

    `path` is the document's path in its folder: it begins every id, is the `document_id`, and its last part the
    `document_name`.
    """
    name = PurePosixPath(path)
    title = " ".join(document.title.split()) or name.stem
    ids = PassageIds(path)
    shown = set[tuple[str, ...]]()
    for section in document.sections:
        first, named = ids.section(section, title), passage_title(section, title)
        unshown = _unshown(section, title, named, shown)
        parts = list(_parts([*unshown, *section.paragraphs], max_tokens)) or [""]
        links = _by_part(section.links, parts, sum(map(size, unshown)))
        for index, (text, own) in enumerate(zip(parts, links, strict=True)):
            yield Passage(ids.part(first, index), named, text, Source(section.page, path, name.name), own)


def _unshown(section: Section, title: str, named: str, shown: set[tuple[str, ...]]) -> list[str]:
    """The document's title and the headings that the titles of its passages have only shortened so far."""
    found = []
    for depth, heading in enumerate((title, *section.headings)):
        path = (title, *section.headings[:depth])
        own = section.page is None and depth == len(section.headings) > 0
        if (own or path not in shown) and _bare(heading) not in _bare(named) and heading not in found:
            found.append(heading)
        shown.add(path)
    return found


def _bare(text: str) -> str:
    return " ".join(_BRACKETS.sub(" ", text).split())


def _by_part(links: Sequence[PlacedLink], parts: Sequence[str], before: int) -> list[tuple[Link, ...]]:
    """The links of each part; `before` is what stands before the place from which they are counted."""
    ends = list(accumulate(map(size, parts)))[:-1] if links else []
    found: list[list[Link]] = [[] for _ in parts]
    for place, link in links:
        found[bisect_right(ends, before + place)].append(link)
    return [tuple(own) for own in found]


def _parts(paragraphs: Sequence[str], max_tokens: int) -> Iterator[str]:
    """Paragraphs put together as long as they fit; of one that is too long its sentences, or parts of them."""
    return packed((text for paragraph in paragraphs for text in _units(paragraph, max_tokens)), max_tokens)


def _units(paragraph: str, max_tokens: int) -> Iterator[str]:
    """A paragraph that fits, else its lines where it is code, else its sentences."""
    if count_tokens(paragraph) <= max_tokens:
        yield f"\n{paragraph}"
    elif "\n" in paragraph:
        yield from (f"\n{line}" for line in paragraph.split("\n"))
    else:
        yield "\n"
        yield from spaced_sentences(paragraph)

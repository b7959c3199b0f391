"""A document cut into passages: by headings or pages first, then by length at paragraphs, sentences and words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import PurePosixPath
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.document import Document, PlacedLink, Section, size
from hopbench.eval.benchmarks.documents.names import PassageIds, passage_title
from hopbench.retrieval.budget import Budget
from hopbench.retrieval.chunking import count_tokens
from hopbench.retrieval.text import sentences
from hopbench.retrieval.types import Link, Passage, Source

PASSAGE_TOKENS = Budget().tokens // Budget().chunks
"""Tokens of the longest passage (`count_tokens`), 300: as many as fit a reader's budget five times."""


WORD_LIMIT = 200  # characters of a word that is kept whole
_BRACKETS = re.compile(r"[()]")
CHARACTERS = 20  # a token, at most: 6,000 in a passage


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
        parts = _parts([*unshown, *section.paragraphs], max_tokens) or [""]
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


class _Unit(NamedTuple):
    """A text that is not cut, and what joins it to the one before."""

    glue: str
    text: str


def _parts(paragraphs: Sequence[str], max_tokens: int) -> list[str]:
    """Paragraphs put together as long as they fit; of one that is too long its sentences, or their words."""
    parts: list[list[_Unit]] = []
    room = 0
    for unit in (unit for paragraph in paragraphs for unit in _units(paragraph, max_tokens)):
        tokens = count_tokens(unit.text)
        if not parts or tokens > room:
            parts.append([])
            room = max_tokens
        parts[-1].append(unit)
        room -= tokens
    texts = ["".join(glue + text for glue, text in part)[len(part[0].glue) :].rstrip() for part in parts]
    return [text for text in texts if text]


def _units(paragraph: str, max_tokens: int) -> Iterator[_Unit]:
    if _fits(paragraph, max_tokens):
        yield _Unit("\n", paragraph)
        return
    lines = paragraph.split("\n")  # only code has more than one
    for line in lines:
        at = 0
        for piece in _pieces(line, max_tokens, code=len(lines) > 1):
            begin = max(line.find(piece, at), at)
            yield _Unit(("" if begin == at else " ") if at else "\n", piece)
            at = begin + len(piece)


def _pieces(line: str, max_tokens: int, *, code: bool) -> Iterator[str]:
    """A line that fits, else its sentences, else their words, those without end in pieces."""
    for text in [line] if code else sentences(line):
        if _fits(text, max_tokens):
            yield text
            continue
        for word in text.split():
            for begin in range(0, len(word), WORD_LIMIT):
                yield from _halves(word[begin : begin + WORD_LIMIT], max_tokens)


def _halves(text: str, max_tokens: int) -> Iterator[str]:
    if len(text) < 2 or _fits(text, max_tokens):
        yield text
        return
    for half in (text[: len(text) // 2], text[len(text) // 2 :]):
        yield from _halves(half, max_tokens)


def _fits(text: str, max_tokens: int) -> bool:
    # A run of letters counts as one token however long it is; no byte counts as more than one.
    limit = max_tokens * CHARACTERS
    return len(text) <= limit and (len(text.encode()) <= max_tokens or count_tokens(text) <= max_tokens)

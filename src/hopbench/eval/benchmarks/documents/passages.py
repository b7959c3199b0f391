"""A document cut into passages: by headings or pages first, then by length at paragraphs, sentences and words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import PurePosixPath

from hopbench.eval.benchmarks.documents.document import Document, PlacedLink, Section, size
from hopbench.eval.benchmarks.documents.names import PassageIds, passage_title
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import packed, spaced_sentences
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Link, Passage, Source

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

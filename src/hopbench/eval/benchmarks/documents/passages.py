"""Cut documents into passages with stable ids: by heading or page, then by length at paragraphs, sentences, words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import PurePosixPath

from hopbench.eval.benchmarks.documents.document import Document, Section, size
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import packed, spaced_sentences
from hopbench.retrieval.text import shortened
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Link, Passage, Source

_SLUG_LIMIT = 100
_TITLE_LIMIT = 200
PASSAGE_TOKENS = Budget().tokens // Budget().chunks
"""Tokens of the longest passage (`count_tokens`), 300: as many as fit a reader's budget five times."""
_NOT_SLUG = re.compile(r"[^\w\- ]")
_BRACKETS = re.compile(r"[()]")


def passages_of(document: Document, path: str, max_tokens: int = PASSAGE_TOKENS) -> Iterator[Passage]:
    """Yield the passages of a document in reading order, none over `max_tokens`.

    `path` is the document's path in its folder: it begins every id, is the `document_id`, and its last part the
    `document_name`. A passage that is the second part of a section has `&part=2` after the section's id.
    """
    name = PurePosixPath(path)
    title = " ".join(document.title.split()) or name.stem
    used = Counter[str]()
    shown = set[tuple[str, ...]]()
    for section in document.sections:
        first, named = _section_id(section, title, path, used), passage_title(section, title)
        unshown = _unshown(section, title, named, shown)
        parts = list(_parts([*unshown, *section.paragraphs], max_tokens)) or [""]
        links: list[list[Link]] = [[] for _ in parts]
        before, ends = sum(map(size, unshown)), list(accumulate(map(size, parts)))[:-1] if section.links else []
        for place, link in section.links:
            links[bisect_right(ends, before + place)].append(link)
        for index, (text, own) in enumerate(zip(parts, links, strict=True)):
            part = f"{'&' if '#' in first else '#'}part={index + 1}" if index else ""
            yield Passage(first + part, named, text, Source(section.page, path, name.name), tuple(own))


def _section_id(section: Section, title: str, document: str, used: Counter[str]) -> str:
    """The id of a section's first part; `used` counts the slugs of the document.

    `guide.md` is the text up to the first heading, or under the heading that is the title; `guide.md#install` is a
    section, named by its own id, else as GitHub names it; `manual.pdf#page=3` is a page.
    """
    if section.page is not None:
        return f"{document}#page={section.page}"
    if not section.headings or (section.headings == (title,) and not used[""]):
        used[""] += 1
        if used[""] == 1:
            return document
        slug = "text"
    elif section.anchor:  # without the marks by which pages and parts are named
        slug = section.anchor[:_SLUG_LIMIT].replace("&", "-").replace("=", "-")
    else:
        plain = _NOT_SLUG.sub("", section.headings[-1].lower()).strip()
        slug = plain.replace(" ", "-")[:_SLUG_LIMIT] or "section"
    while True:
        number = used[slug]
        used[slug] += 1
        numbered = f"{slug}-{number}" if number else slug
        if not number or not used[numbered]:
            used[numbered] += bool(number)
            return f"{document}#{numbered}"


def passage_title(section: Section, title: str) -> str:
    """Name a section's passages as `Install (Server guide)`: its heading, and those above it as the qualifier.

    Entities are named by titles without their qualifier, and BM25 and embedders read both.
    """
    above = [title, *(heading for heading in section.headings[:-1] if heading != title)]
    own = section.headings[-1] if section.headings else title
    if own == title:
        return shortened(title, _TITLE_LIMIT)
    qualifier = _BRACKETS.sub(" ", ": ".join(above))
    return f"{shortened(own, _TITLE_LIMIT)} ({shortened(qualifier, _TITLE_LIMIT)})"


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


def _parts(paragraphs: Sequence[str], max_tokens: int) -> Iterator[str]:
    """Pack paragraphs as long as they fit; of one that is too long its lines if it is code, else its sentences."""

    def units() -> Iterator[str]:
        for paragraph in paragraphs:
            if count_tokens(paragraph) <= max_tokens:
                yield f"\n{paragraph}"
            elif "\n" in paragraph:
                yield from (f"\n{line}" for line in paragraph.split("\n"))
            else:
                yield "\n"
                yield from spaced_sentences(paragraph)

    return packed(units(), max_tokens)

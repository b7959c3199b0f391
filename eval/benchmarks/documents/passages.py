"""A document cut into passages: by headings or pages first, then by length at paragraphs, sentences and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.document import Document
from hopbench.eval.benchmarks.documents.names import PassageIds, passage_title
from hopbench.retrieval.budget import Budget
from hopbench.retrieval.chunking import count_tokens
from hopbench.retrieval.text import sentences
from hopbench.retrieval.types import Passage, Source

PASSAGE_TOKENS = Budget().tokens // Budget().chunks
"""Tokens of the longest passage (`count_tokens`), 300: as many as fit a reader's budget five times."""


WORD_LIMIT = 200  # characters of a word that is kept whole
CHARACTERS = 20  # a token, at most: 6,000 in a passage


def passages_of(document: Document, path: str, max_tokens: int = PASSAGE_TOKENS) -> Iterator[Passage]:
    """The passages of a document in reading order, none over `max_tokens`.

    `path` is the document's path in its folder: it begins every id, is the `document_id`, and its last part the
    `document_name`.
    """
    name = PurePosixPath(path)
    title = " ".join(document.title.split()) or name.stem
    ids = PassageIds(path)
    for section in document.sections:
        first = ids.section(section, title)
        for index, text in enumerate(_parts(section.paragraphs, max_tokens) or [""]):
            source = Source(section.page, path, name.name)
            yield Passage(ids.part(first, index), passage_title(section, title), text, source)


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
    return ["".join(glue + text for glue, text in part).strip() for part in parts]


def _units(paragraph: str, max_tokens: int) -> Iterator[_Unit]:
    glue = "\n"
    whole = [paragraph] if _fits(paragraph, max_tokens) else sentences(paragraph)
    for text in whole:
        for piece in [text] if _fits(text, max_tokens) else _pieces(text, max_tokens):
            yield _Unit(glue, piece)
            glue = " "


def _pieces(sentence: str, max_tokens: int) -> list[str]:
    """A sentence's words, those without end in pieces."""
    longest = min(max_tokens, WORD_LIMIT)  # a text of n characters has at most n tokens
    return [word[at : at + longest] for word in sentence.split() for at in range(0, len(word), longest)]


def _fits(text: str, max_tokens: int) -> bool:
    # A run of letters counts as one token however long it is, as in scripts without spaces.
    return len(text) <= max_tokens or (len(text) <= max_tokens * CHARACTERS and count_tokens(text) <= max_tokens)

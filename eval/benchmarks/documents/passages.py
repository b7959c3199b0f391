"""A document cut into passages: by headings or pages first, then by length at paragraphs, sentences and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from hopbench.eval.benchmarks.documents.document import Document
from hopbench.eval.benchmarks.documents.names import PassageIds, passage_title
from hopbench.retrieval.budget import Budget
from hopbench.retrieval.chunking import packed, spaced_sentences
from hopbench.retrieval.tokens import count_tokens
from hopbench.retrieval.types import Passage, Source

PASSAGE_TOKENS = Budget().tokens // Budget().chunks
"""Tokens of the longest passage (`count_tokens`), 300: as many as fit a reader's budget five times."""


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
        for index, text in enumerate(list(_parts(section.paragraphs, max_tokens)) or [""]):
            source = Source(section.page, path, name.name)
            yield Passage(ids.part(first, index), passage_title(section, title), text, source)


def _parts(paragraphs: Sequence[str], max_tokens: int) -> Iterator[str]:
    """Paragraphs put together as long as they fit; of one that is too long its sentences, or parts of them."""
    return packed((text for paragraph in paragraphs for text in _units(paragraph, max_tokens)), max_tokens)


def _units(paragraph: str, max_tokens: int) -> Iterator[str]:
    if count_tokens(paragraph) <= max_tokens:
        yield f"\n{paragraph}"
    else:
        yield "\n"
        yield from spaced_sentences(paragraph)

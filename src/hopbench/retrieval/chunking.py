"""Passages as chunks: a passage is one chunk unless it is too long for a model to read at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

import numpy as np

from hopbench.retrieval.corpus import WHOLE, MappedChunks, MappedPassages, chunk_of, part_id
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import sentences
from hopbench.retrieval.text.model_tokens import count_tokens, pieces
from hopbench.retrieval.types import MAX_TOKENS, Chunk, Passage


def chunk_passages(passages: Iterable[Passage], max_tokens: int = MAX_TOKENS) -> Sequence[Chunk]:
    """The chunks of a corpus, sorted by id; a passage over `max_tokens` is split at sentence ends: `ID#0`, `ID#1` …

    A sentence over `max_tokens` is cut between words, in scripts without spaces between characters.
    """
    if isinstance(passages, MappedPassages):
        return _mapped_chunks(passages, max_tokens)
    chunks = sorted((chunk for passage in passages for chunk in _split(passage, max_tokens)), key=attrgetter("id"))
    _refuse_equal([chunk.id for chunk in chunks])
    return chunks


def _split(passage: Passage, max_tokens: int) -> Iterator[Chunk]:
    # A text of n bytes has at most n tokens: most passages need no counting.
    if len(passage.text.encode(errors="replace")) <= max_tokens or count_tokens(passage.text) <= max_tokens:
        yield chunk_of(passage)
        return
    for part, text in enumerate(_parts(passage.text, max_tokens)):
        yield chunk_of(passage, part, text)


def _mapped_chunks(passages: MappedPassages, max_tokens: int) -> MappedChunks:
    """Only passages of more bytes than `max_tokens` are read: no text has more tokens than bytes."""
    long = np.flatnonzero(passages.sizes > max_tokens)
    found = zip(long.tolist(), passages.some(long), strict=True)
    counted = ((row, one) for row, one in found if count_tokens(one.text) > max_tokens)
    parts = {row: list(_parts(one.text, max_tokens)) for row, one in counted}
    if not parts:
        return MappedChunks(passages, passages.order, np.full(len(passages), WHOLE), {})
    ids = passages.ids
    divided = [(part_id(ids[row], number), row, number) for row in parts for number in range(len(parts[row]))]
    listed = sorted([*((one, row, WHOLE) for row, one in enumerate(ids) if row not in parts), *divided])
    _refuse_equal([one for one, _, _ in listed])
    rows, numbers = np.array([place for _, *place in listed], np.int64).T.copy()
    return MappedChunks(passages, rows, numbers, parts)


def _refuse_equal(ids: Sequence[str]) -> None:
    """Raise InputError where two of the sorted ids are equal."""
    for before, after in pairwise(ids):
        if before == after:
            raise InputError(f"two chunks have the id {after!r}: rename the passage whose id ends in '#' and a number")


def _parts(text: str, max_tokens: int) -> Iterator[str]:
    return packed(spaced_sentences(text), max_tokens)


def packed(texts: Iterable[str], max_tokens: int) -> Iterator[str]:
    """Join texts as long as they have at most `max_tokens` together; one that has more is cut."""
    part, size = "", 0
    for text in texts:
        tokens = count_tokens(text)
        if part and size + tokens > max_tokens:
            yield from pieces(part, max_tokens)
            part, size = "", 0
        part += text
        size += tokens
    yield from pieces(part, max_tokens)


def spaced_sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each with the blanks and line breaks before it."""
    end = 0
    for sentence in sentences(text):
        begin, end = end, text.index(sentence, end) + len(sentence)
        yield text[begin:end]

"""Passages as chunks: a passage is one chunk unless it is too long for a model to read at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import attrgetter

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import sentences
from hopbench.retrieval.types import Chunk, Passage

MAX_TOKENS = 1200
_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_tokens(text: str) -> int:
    """The number of words and punctuation marks: within 10% of model tokenizers for English, and computed offline."""
    return len(_TOKEN.findall(text))


def chunk_passages(passages: Iterable[Passage], max_tokens: int = MAX_TOKENS) -> list[Chunk]:
    """The chunks of a corpus, sorted by id; a passage over `max_tokens` is split at sentence ends: `ID#0`, `ID#1` …"""
    chunks = sorted((chunk for passage in passages for chunk in _split(passage, max_tokens)), key=attrgetter("id"))
    for before, after in pairwise(chunks):
        if before.id == after.id:
            raise InputError(
                f"two chunks have the id {after.id!r}: rename the passage whose id ends in '#' and a number"
            )
    return chunks


def _split(passage: Passage, max_tokens: int) -> Iterator[Chunk]:
    # A text of n characters has at most n tokens: most passages need no counting.
    if len(passage.text) <= max_tokens or count_tokens(passage.text) <= max_tokens:
        yield Chunk(passage.id, passage.id, 0, passage.title, passage.text, passage.source)
        return
    for index, part in enumerate(_parts(passage.text, max_tokens)):
        yield Chunk(f"{passage.id}#{index}", passage.id, index, passage.title, part, passage.source)


def _parts(text: str, max_tokens: int) -> Iterator[str]:
    part: list[str] = []
    size = 0
    for sentence in sentences(text):
        tokens = count_tokens(sentence)
        if part and size + tokens > max_tokens:
            yield " ".join(part)
            part, size = [], 0
        part.append(sentence)
        size += tokens
    if part:
        yield " ".join(part)

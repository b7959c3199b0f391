"""A question as hoprank reads it: its words with their idf, and the entities it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from hopbench.retrieval.index import Link, Linker
from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.arithmetic import ln, shares, summed
from hopbench.retrieval.text import Token, unit_tokens

TINY = 1e-6
UNKNOWN = -1
TOGETHER = 1 << 17  # values at a time, 1 MB: long questions about long passages would take a thousand times as much
TELLING = 3.0  # idf of a word in one chunk of twenty


@dataclass(frozen=True, eq=False)
class ReadQuestion:
    """The w distinct content words of a question (all its words where there is no other), and its entities.

    `words` are folded; `numbers` (w,) are the corpus's numbers of them, UNKNOWN where it has none; `idf` (w,), ln n for
    an unknown word; `frequency` (w,) in chunks; `capital` and `linked` (w,): it could begin a name, it is part of a
    linked one.
    `entities` is entity row → weight (idf share of its words × the linker's trust), `chunks` is chunk row → the same
    for titles, shared among the √k chunks of a title.
    """

    words: Sequence[str]
    numbers: Numbers
    idf: Floats
    frequency: Numbers
    capital: Flags
    linked: Flags
    entities: Mapping[int, float]
    chunks: Mapping[int, float]

    @cached_property
    def open_idf(self) -> Floats:
        """The idf of words outside linked entities, 0 for the others, (w,)."""
        return np.asarray(self.idf * ~self.linked)

    @cached_property
    def shares(self) -> Floats:
        """The share of each word in the idf of all, (w,)."""
        return shares(self.idf, summed(self.idf) + TINY)

    @cached_property
    def open_shares(self) -> Floats:
        """The share of each word in the idf of the open ones, (w,)."""
        return shares(self.open_idf, summed(self.open_idf) + TINY)

    @cached_property
    def telling_pairs(self) -> tuple[Numbers, Numbers]:
        """The first and the second of each pair of words with idf > 3, (m,) both."""
        telling = np.flatnonzero(self.idf > TELLING)
        first, second = np.triu_indices(len(telling), 1)
        return telling[first], telling[second]

    def together(self, close: Floats, others: Floats) -> Floats:
        """Σ idf of the words that one text or another covers / Σ idf of all, (k, m).

        `close` (k, w) and `others` (m, w) are how far each covers the question's words.
        """
        return np.asarray(_together(close, others, self.shares[None])[0])

    def together_and_open(self, close: Floats, others: Floats) -> Floats:
        """The same, and the same over the words outside linked entities, (2, k, m)."""
        return _together(close, others, np.stack([self.shares, self.open_shares]))


def _together(close: Floats, others: Floats, shares_: Floats) -> Floats:
    """Sums of `shares_` (n, w) times the larger of two values, (n, k, m), so that operations run along the others."""
    theirs, found = np.ascontiguousarray(others.T)[:, None], np.empty((len(shares_), len(close), len(others)))
    for part in in_parts(len(close), others.size):
        better = np.maximum(np.ascontiguousarray(close[part].T)[..., None], theirs)
        words, *size = better.shape
        found[:, part] = (shares_ @ better.reshape(words, size[0] * size[1])).reshape(len(shares_), *size)
    return found


def in_parts(count: int, size: int) -> Iterator[slice]:
    """Slices of `count` rows, of each of which `size` values are made at a time: `TOGETHER` of them, or one row's."""
    return blocks(count, max(TOGETHER // max(size, 1), 1))


def read_question(
    text: str, links: Sequence[Link], corpus: CorpusIndex, row_of: Mapping[str, int], reader: Linker
) -> ReadQuestion:
    """Read a question, in which `reader` finds these `links`, against the corpus."""
    words_read, stop = reader.tokens(text), reader.language.stop
    if not reader.language.english:
        words_read, links = _divided(words_read, links)
    inside = {place for link in links for place in range(link.start, link.end)}
    first: dict[str, int] = {}
    for place, word in enumerate(words_read):
        if word.folded not in stop:
            first.setdefault(word.folded, place)
    if not first:
        first = {word.folded: place for place, word in enumerate(words_read)}
    words = corpus.words
    numbers = np.array([words.vocabulary.get(word, UNKNOWN) for word in first], np.int64)
    known = numbers != UNKNOWN
    named = {word.folded for word in words_read if word.capital}
    idf, frequency = np.full(len(first), ln(float(max(corpus.chunks, 2)))), np.zeros(len(first), np.int64)
    idf[known], frequency[known] = words.idf[numbers[known]], words.frequency[numbers[known]]
    weights = dict(zip(first, idf.tolist(), strict=True))
    entities, chunks = _linked(links, words_read, weights, corpus, row_of)
    return ReadQuestion(
        tuple(first),
        numbers,
        idf,
        frequency,
        np.array([word in named for word in first], bool),
        np.array([place in inside for place in first.values()], bool),
        entities,
        chunks,
    )


def _divided(words: Sequence[Token], links: Sequence[Link]) -> tuple[list[Token], list[Link]]:
    """The words as `Words` has them, and the links by their places."""
    each = [unit_tokens([word]) for word in words]
    start = [0, *accumulate(map(len, each))]
    moved = [replace(link, start=start[link.start], end=start[link.end]) for link in links]
    return [unit for units in each for unit in units], moved


def _linked(
    links: Sequence[Link],
    words_read: Sequence[Token],
    idf: Mapping[str, float],
    corpus: CorpusIndex,
    row_of: Mapping[str, int],
) -> tuple[dict[int, float], dict[int, float]]:
    """Weights of linked entities and of the chunks they are the titles of."""
    entities: dict[int, float] = {}
    chunks: dict[int, float] = {}
    total = sum(idf.values()) + TINY
    mentions = corpus.mentions
    for link in links:
        share = sum(idf.get(word.folded, 0.0) for word in words_read[link.start : link.end]) / total
        entity = corpus.graph.entity_row.get(link.entity)
        if entity is not None:
            entities[entity] = max(entities.get(entity, 0.0), share * link.weight)
        rows = [row_of[chunk] for chunk in link.chunks]
        worth = share
        if not rows and entity is not None:
            rows = mentions.titled[mentions.titled_by[entity] : mentions.titled_by[entity + 1]].tolist()
            worth = share * link.weight / max(len(rows), 1) ** 0.5
        for row in rows:
            chunks[row] = min(max(chunks.get(row, 0.0), worth), 1.0)
    return entities, chunks

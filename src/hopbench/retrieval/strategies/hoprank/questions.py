"""Questions as hoprank reads them, one by one and side by side: words with their idf, and the entities they name.

A chunk of one of q questions has the number question · n + chunk, of the n chunks of the corpus: its `key`. Of one
question, keys are chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.index import Link, Linker
from hopbench.retrieval.search.candidates import blocks
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Lookup, Numbers
from hopbench.retrieval.support.arithmetic import ln, shares, summed
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.text import Token, unit_tokens

TINY = 1e-6
UNKNOWN = -1
VALUE_BATCH = 1 << 17  # values at a time, 1 MB: long questions about long passages would take a thousand times as much
MIN_PAIR_IDF = 3.0  # idf of a word in one chunk of twenty


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
    def informative_pairs(self) -> tuple[Numbers, Numbers]:
        """The first and the second of each pair of words with idf > 3, (m,) both."""
        high = np.flatnonzero(self.idf > MIN_PAIR_IDF)
        first, second = np.triu_indices(len(high), 1)
        return high[first], high[second]

    def together(self, close: Floats, others: Floats) -> Floats:
        """Σ idf of the words that one text or another covers / Σ idf of all, then of the open words, (2, k, m).

        `close` (k, w) and `others` (m, w) are how far each covers the question's words.
        """
        both = np.stack([self.shares, self.open_shares])
        # Operations run along the others.
        theirs, result = np.ascontiguousarray(others.T)[:, None], np.empty((2, len(close), len(others)))
        for part in in_batches(len(close), others.size):
            better = np.maximum(np.ascontiguousarray(close[part].T)[..., None], theirs)
            words, *size = better.shape
            result[:, part] = (both @ better.reshape(words, size[0] * size[1])).reshape(2, *size)
        return result


def in_batches(count: int, size: int) -> Iterator[slice]:
    """Slices of `count` rows of `size` values each, with `VALUE_BATCH` values in a slice, or those of one row."""
    return blocks(count, max(VALUE_BATCH // max(size, 1), 1))


def read_question(
    text: str, links: Sequence[Link], corpus: CorpusIndex, row_of: Mapping[str, int], reader: Linker
) -> ReadQuestion:
    """Read a question, in which `reader` finds these `links`, against the corpus."""
    words_read, stop = reader.tokens(text), reader.language.stop
    if not reader.language.english:  # the words as `Words` has them, and the links by their places
        parts = [unit_tokens([word]) for word in words_read]
        start = [0, *accumulate(map(len, parts))]
        links = [replace(link, start=start[link.start], end=start[link.end]) for link in links]
        words_read = [unit for part in parts for unit in part]
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


MIN_REMAINDERS = 1024


@dataclass(frozen=True, eq=False)
class Questions(Sequence[ReadQuestion]):
    """The q questions `each`; their words are rows of w columns, as many as the longest has, empty beyond their own.

    `numbers` (q, w) are the corpus's numbers of the words, UNKNOWN where it has none.
    """

    each: Sequence[ReadQuestion]

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, number: Any) -> Any:
        """A question by its number."""
        return self.each[number]

    def _rows(self, columns: Sequence[NDArray[Any]], otherwise: Any = 0) -> NDArray[Any]:
        """Lay out values of each question's words as rows, (q, w), `otherwise` beyond a question's own."""
        counts = np.array([len(one.words) for one in self.each], np.int64)
        inside = np.arange(counts.max(initial=0)) < counts[:, None]
        values = np.concatenate(columns)
        rows = np.full(inside.shape, otherwise, values.dtype)
        rows[inside] = values
        return rows

    @cached_property
    def numbers(self) -> Numbers:
        """The corpus's numbers of the words, (q, w)."""
        return self._rows([one.numbers for one in self.each], UNKNOWN)

    @cached_property
    def frequency(self) -> Numbers:
        """In how many chunks each word is, (q, w)."""
        return self._rows([one.frequency for one in self.each])

    @cached_property
    def _shares(self) -> tuple[Floats, Floats, Floats]:
        """Of all words, of the open and of the capitalised ones."""
        capital = [one.idf * one.capital for one in self.each]
        return (
            self._rows([one.shares for one in self.each]),
            self._rows([one.open_shares for one in self.each]),
            self._rows([shares(one, summed(one) + TINY) for one in capital]),
        )

    def share(self, covered: Flags | Floats, of: Numbers) -> Floats:
        """Σ idf of the covered words (k, w) / Σ idf of all, (k,), each row of the words of the question it is `of`.

        A word may be covered in part.
        """
        return products(covered, self._shares[0], of)

    def open_share(self, covered: Flags | Floats, of: Numbers) -> Floats:
        """The same over the words outside linked entities: what a question asks beyond what it names."""
        return products(covered, self._shares[1], of)

    def capital_share(self, covered: Flags, of: Numbers) -> Floats:
        """The same over the capitalised words."""
        return products(covered, self._shares[2], of)

    @cached_property
    def _by_remainder(self) -> tuple[Numbers, Numbers, NDArray[np.int16], NDArray[np.int64]]:
        """For each question a power of two, less one, by which its words leave different remainders: (q,).

        Then where its remainders begin (q,), and by remainder which of its words, UNKNOWN for none, and its number. A
        column of all of a large corpus's words would take longer to make than it is used.
        """
        sizes = []
        for one in self.each:
            known, size = one.numbers[one.numbers != UNKNOWN], MIN_REMAINDERS
            while len(distinct(known % size)) < len(known):
                size *= 2
            sizes.append(size)
        size_of = np.array(sizes, np.int64)
        first = size_of.cumsum() - size_of
        which, number = np.full(size_of.sum(), UNKNOWN, np.int16), np.full(size_of.sum(), UNKNOWN, np.int64)
        of, place = np.nonzero(self.numbers != UNKNOWN)
        cell = first[of] + self.numbers[of, place] % size_of[of]
        which[cell], number[cell] = place, self.numbers[of, place]
        return size_of - 1, first, which, number

    def asks(self, numbers: NDArray[Any], of: Numbers) -> Flags:
        """Whether each word number is one of the question it is `of`."""
        mask, first, _, known = self._by_remainder
        return np.asarray(known[first[of] + (numbers & mask[of])] == numbers)

    def names(self, entity: NDArray[Any], of: Numbers) -> Flags:
        """Whether the question it is `of` names each entity."""
        named = [(number, one) for number, question in enumerate(self.each) for one in question.entities]
        question, wanted = np.array(named, np.int64).reshape(-1, 2).T
        size = max(wanted.max(initial=0), entity.max(initial=0)) + 1
        return np.asarray(Lookup.marks(np.sort(question * size + wanted))[of * size + entity])

    def covered(self, numbers: NDArray[Any], begin: NDArray[Any], end: NDArray[Any], of: Numbers) -> Flags:
        """Which words of the question it is `of` occur in each of k ranges of word numbers, (k, w)."""
        inside = np.zeros((len(begin), self.numbers.shape[1]), bool)
        mask, first, which, known = self._by_remainder
        for part in word_batches(end - begin):
            asking, lengths = of[part], (end - begin)[part]
            stops = lengths.cumsum()
            read = numbers[np.arange(lengths.sum()) + (end[part] - stops).repeat(lengths)]
            place = np.empty(len(read), np.int64)
            begins = np.flatnonzero(np.diff(asking, prepend=-1)).tolist()
            for one, rest in pairwise([*begins, len(asking)]):  # few: ranges of a question stand side by side
                words = slice(int(stops[one] - lengths[one]), int(stops[rest - 1]))
                place[words] = (read[words] & mask[asking[one]]) + first[asking[one]]
            hit = np.flatnonzero(which[place] != UNKNOWN)  # few, so that only these need be compared
            hit = hit[known[place[hit]] == read[hit]]
            inside[part][stops.searchsorted(hit, "right"), which[place[hit]]] = True
        return inside


def word_batches(lengths: Numbers) -> Iterator[slice]:
    """Slices of ranges that have some `VALUE_BATCH` words each: all of long passages would take a hundred MB."""
    cuts = np.flatnonzero(np.diff(lengths.cumsum() // VALUE_BATCH)) + 1
    return (slice(*pair) for pair in pairwise([0, *cuts.tolist(), len(lengths)]))


def products(rows: Flags | Floats, others: Floats, of: Numbers) -> Floats:
    """The products of rows (k, w) with those `of` others (q, w), (k,): sums of shares, exact in any order."""
    parts = in_batches(*rows.shape)
    found = [np.einsum("ij,ij->i", rows[part], others.take(of[part], axis=0)) for part in parts]
    return np.concatenate([np.zeros(0), *found])


def parts_of(of: Numbers, count: int) -> list[slice]:
    """Where each of so many questions has rows: `of` (k,), ascending, is each row's question."""
    ends = of.searchsorted(np.arange(count + 1)).tolist()
    return [slice(*pair) for pair in pairwise(ends)]

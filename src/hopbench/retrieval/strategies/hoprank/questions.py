"""Several questions side by side: what is read of their candidates costs one array operation for all of them.

A chunk of one of q questions has the number question · n + chunk, of the n chunks of the corpus: its `key`. Of one
question, keys are chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.question import TINY, TOGETHER, UNKNOWN, ReadQuestion, in_parts
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.arithmetic import shares, summed
from hopbench.retrieval.support.distinct import distinct

LEAST_REMAINDERS = 1024


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

    @cached_property
    def _inside(self) -> Flags:
        counts = np.array([len(one.words) for one in self.each], np.int64)
        return np.asarray(np.arange(counts.max(initial=0)) < counts[:, None])

    def _rows(self, columns: Sequence[NDArray[Any]], otherwise: Any = 0) -> NDArray[Any]:
        """What is known of each question's words as rows, (q, w), `otherwise` beyond a question's own."""
        values = np.concatenate(columns)
        found = np.full(self._inside.shape, otherwise, values.dtype)
        found[self._inside] = values
        return found

    @cached_property
    def numbers(self) -> Numbers:
        """The corpus's numbers of the words, (q, w)."""
        return self._rows([one.numbers for one in self.each], UNKNOWN)

    @cached_property
    def frequency(self) -> Numbers:
        """In how many chunks each word is, (q, w)."""
        return self._rows([one.frequency for one in self.each])

    @cached_property
    def _capital_shares(self) -> Floats:
        idf = [one.idf * one.capital for one in self.each]
        return self._rows([shares(one, summed(one) + TINY) for one in idf])

    @cached_property
    def _shares(self) -> Floats:
        return self._rows([one.shares for one in self.each])

    @cached_property
    def _open_shares(self) -> Floats:
        return self._rows([one.open_shares for one in self.each])

    def share(self, covered: Flags | Floats, of: Numbers) -> Floats:
        """Σ idf of the covered words (k, w) / Σ idf of all, (k,), each row of the words of the question it is `of`.

        A word may be covered in part.
        """
        return products(covered, self._shares, of)

    def open_share(self, covered: Flags | Floats, of: Numbers) -> Floats:
        """The same over the words outside linked entities: what a question asks beyond what it names."""
        return products(covered, self._open_shares, of)

    def capital_share(self, covered: Flags, of: Numbers) -> Floats:
        """The same over the capitalised words."""
        return products(covered, self._capital_shares, of)

    @cached_property
    def _by_remainder(self) -> tuple[Numbers, Numbers, NDArray[np.int16], NDArray[np.int64]]:
        """For each question a power of two, less one, by which its words leave different remainders: (q,).

        Then where its remainders begin (q,), and by remainder which of its words, UNKNOWN for none, and its number. A
        column of all of a large corpus's words would take longer to make than it is used.
        """
        sizes = []
        for one in self.each:
            known, size = one.numbers[one.numbers != UNKNOWN], LEAST_REMAINDERS
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
        for part in of_some_words(end - begin):
            self._cover(inside[part], numbers, begin[part], end[part], of[part])
        return inside

    def _cover(self, inside: Flags, numbers: NDArray[Any], begin: Numbers, end: Numbers, of: Numbers) -> None:
        mask, first, which, known = self._by_remainder
        lengths = end - begin
        stops = lengths.cumsum()
        read = numbers[np.arange(lengths.sum()) + (end - stops).repeat(lengths)]
        place = np.empty(len(read), np.int64)
        begins = np.flatnonzero(np.diff(of, prepend=-1)).tolist()
        for one, rest in pairwise([*begins, len(of)]):  # ranges of the same question side by side: there are few such
            words = slice(int(stops[one] - lengths[one]), int(stops[rest - 1]))
            place[words] = (read[words] & mask[of[one]]) + first[of[one]]
        hit = np.flatnonzero(which[place] != UNKNOWN)  # few, so that only these need be compared
        hit = hit[known[place[hit]] == read[hit]]
        inside[stops.searchsorted(hit, "right"), which[place[hit]]] = True


def of_some_words(lengths: Numbers) -> Iterator[slice]:
    """Slices of ranges that have some `TOGETHER` words each: all of long passages would take a hundred MB."""
    cuts = np.flatnonzero(np.diff(lengths.cumsum() // TOGETHER)) + 1
    return (slice(*pair) for pair in pairwise([0, *cuts.tolist(), len(lengths)]))


def products(rows: Flags | Floats, others: Floats, of: Numbers) -> Floats:
    """The products of rows (k, w) with those `of` others (q, w), (k,): sums of shares, exact in any order."""
    parts = in_parts(*rows.shape)
    found = [np.einsum("ij,ij->i", rows[part], others.take(of[part], axis=0)) for part in parts]
    return np.concatenate([np.zeros(0), *found])


def parts_of(of: Numbers, count: int) -> list[slice]:
    """Where each of so many questions has rows: `of` (k,), ascending, is each row's question."""
    ends = of.searchsorted(np.arange(count + 1)).tolist()
    return [slice(*pair) for pair in pairwise(ends)]

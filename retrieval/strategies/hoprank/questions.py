"""Several questions side by side: what is read of their candidates costs one array operation for all of them.

A chunk of one of q questions has the number question · n + chunk, of the n chunks of the corpus: its `key`. Of one
question, keys are chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.question import TINY, UNKNOWN, ReadQuestion, in_parts
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, Words
from hopbench.retrieval.support.arithmetic import shares, summed

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

    def share(self, covered: Flags, of: Numbers) -> Floats:
        """Σ idf of the covered words (k, w) / Σ idf of all, (k,), each row of the words of the question it is `of`."""
        return products(covered, self._shares, of)

    def open_share(self, covered: Flags, of: Numbers) -> Floats:
        """The same over the words outside linked entities: what a question asks beyond what it names."""
        return products(covered, self._open_shares, of)

    def capital_share(self, covered: Flags, of: Numbers) -> Floats:
        """The same over the capitalised words."""
        return products(covered, self._capital_shares, of)

    @cached_property
    def _by_remainder(self) -> tuple[int, NDArray[np.int16], NDArray[np.int64]]:
        """A power of two by which the words of each question leave different remainders.

        With it, by question and remainder: which of its words, UNKNOWN for none, and its number. A column of all of a
        large corpus's words would take longer to make than it is used.
        """
        of, place = np.nonzero(self.numbers != UNKNOWN)
        number = self.numbers[of, place]
        size = LEAST_REMAINDERS
        while len(np.unique(of * size + number % size)) < len(number):
            size *= 2
        which, known = np.full(len(self) * size, UNKNOWN, np.int16), np.full(len(self) * size, UNKNOWN, np.int64)
        which[of * size + number % size], known[of * size + number % size] = place, number
        return size, which, known

    def asks(self, numbers: NDArray[Any], of: Numbers) -> Flags:
        """Whether each word number is one of the question it is `of`."""
        size, _, known = self._by_remainder
        return np.asarray(known[of * size + (numbers & (size - 1))] == numbers)

    @cached_property
    def _named(self) -> tuple[Numbers, Numbers]:
        named = [np.array(list(one.entities), np.int64) for one in self.each]
        return np.arange(len(self)).repeat([len(one) for one in named]), np.concatenate(named)

    def name(self, entity: NDArray[Any], of: Numbers) -> Flags:
        """Whether the question it is `of` names each entity."""
        question, named = self._named
        size = max(int(named.max(initial=0)), int(entity.max(initial=0))) + 1
        wanted = np.sort(question * size + named)
        keys = of * size + entity
        return np.asarray(np.append(wanted, -1)[wanted.searchsorted(keys)] == keys)

    def covered(self, words: Words, begin: NDArray[Any], end: NDArray[Any], of: Numbers) -> Flags:
        """Which words of the question it is `of` occur in each of k ranges of word positions, (k, w)."""
        lengths = end - begin
        stops = lengths.cumsum()
        numbers = words.numbers[np.arange(lengths.sum()) + (end - stops).repeat(lengths)]
        size, which, known = self._by_remainder
        place = (numbers & (size - 1)) + (of * size).repeat(lengths)
        hit = np.flatnonzero(which[place] != UNKNOWN)  # few, so that only these need be compared
        hit = hit[known[place[hit]] == numbers[hit]]
        inside = np.zeros((len(begin), self.numbers.shape[1]), bool)
        inside[stops.searchsorted(hit, "right"), which[place[hit]]] = True
        return inside


def products(rows: Flags, others: Floats, of: Numbers) -> Floats:
    """The products of rows (k, w) with those `of` others (q, w), (k,): sums of shares, exact in any order."""
    parts = in_parts(*rows.shape)
    found = [np.einsum("ij,ij->i", rows[part], others[of[part]]) for part in parts]
    return np.concatenate([np.zeros(0), *found])


def parts_of(of: Numbers, count: int) -> list[slice]:
    """Where each of so many questions has rows: `of` (k,), ascending, is each row's question."""
    ends = of.searchsorted(np.arange(count + 1)).tolist()
    return [slice(*pair) for pair in pairwise(ends)]

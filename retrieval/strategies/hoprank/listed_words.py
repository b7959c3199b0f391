"""The words of some chunks, sentence by sentence: read once for all that compares candidates by their words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, Words, numbered
from hopbench.retrieval.support.csr import expand_ranges


@dataclass(frozen=True, eq=False)
class ListedWords:
    """The s sentences of k chunks, chunk by chunk, a title being its chunk's first, and their t words.

    `distinct` (m,) are the word numbers that occur, ascending, `word` (t,) which of them each word is and `owner` (t,)
    the sentence that it is in, counted here from 0; `sentences` (s,) are the corpus's numbers of the sentences;
    `first` (k + 1,) are offsets of the chunks into them.
    """

    distinct: Numbers
    word: Numbers
    owner: Numbers
    sentences: Numbers
    first: Numbers

    @classmethod
    def of(cls, words: Words, chunks: Numbers) -> ListedWords:
        """Read some chunks."""
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentences, _ = expand_ranges(begin, end)
        first = np.concatenate([[0], (end - begin).cumsum()])
        positions, owner = expand_ranges(*words.of_sentences(sentences))
        return cls(*numbered(words.numbers[positions]), owner, sentences, first)

    @cached_property
    def chunk(self) -> Numbers:
        """The chunk of each sentence, (s,), counted here from 0."""
        return np.arange(len(self.first) - 1).repeat(np.diff(self.first))

    @cached_property
    def in_title(self) -> Flags:
        """Which of the distinct words stand in a title, (m,)."""
        of_title = np.zeros(len(self.sentences), bool)
        of_title[self.first[:-1]] = True
        found = np.zeros(len(self.distinct), bool)
        found[self.word[of_title[self.owner]]] = True
        return found

    def best(self, values: Floats) -> Floats:
        """The largest value of each chunk's sentences, (s, …) → (k, …)."""
        return np.asarray(np.maximum.reduceat(values, self.first[:-1]))

    def having(self, chosen: Flags) -> Floats:
        """1 for each sentence that has a word, (s, v), of the v chosen among the distinct words (m,)."""
        return self._having(chosen, self.owner, len(self.sentences))

    def chunks_having(self, chosen: Flags) -> Floats:
        """The same for chunks, (k, v)."""
        return self._having(chosen, self.chunk[self.owner], len(self.first) - 1)

    def _having(self, chosen: Flags, owner: Numbers, count: int) -> Floats:
        column = chosen.cumsum() - 1
        hit = np.flatnonzero(chosen[self.word])
        found = np.zeros((count, int(chosen.sum())))
        found[owner[hit], column[self.word[hit]]] = 1.0
        return found

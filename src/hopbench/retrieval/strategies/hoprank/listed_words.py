"""The words of some chunks, sentence by sentence: read once for all that compares candidates by their words.

Stop words, some half of all, link nothing and are near nothing: they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, Words, numbered
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.support.distinct import distinct


@dataclass(frozen=True, eq=False)
class Having:
    """The n pairs of one of v words and a text that has it, `word` and `text` (n,), each once and in their order.

    The pairs of a word begin at `start` (v + 1,). Few texts have a word: an array of all words and texts would be
    nearly all zeros, and the longer the texts the more of them.
    """

    word: Numbers
    text: Numbers
    start: Numbers

    @classmethod
    def of(cls, word: Numbers, text: Numbers, words: int, texts: int) -> Having:
        """From pairs in any order, some of them several times; there are so many words and texts."""
        word, text = np.divmod(distinct(word * max(texts, 1) + text), max(texts, 1))
        return cls(word, text, word.searchsorted(np.arange(words + 1)))

    def of_words(self, words: Numbers) -> tuple[Numbers, Numbers]:
        """The pairs of some words, word by word, by their places here, and which of these words each has."""
        return expand_ranges(self.start[words], self.start[words + 1])


@dataclass(frozen=True, eq=False)
class ListedWords:
    """The s sentences of k chunks, chunk by chunk, a title being its chunk's first, and their t words but stop words.

    Each chunk is read for a question, `of` (k,), ascending. `distinct` (m,) are the word numbers that occur, those of a
    question after those of the one before, ascending; `asked` (m,) is the question of each. `word` (t,) is which of
    them each word is and `owner` (t,) the sentence that it is in, counted here from 0; `sentences` (s,) are the
    corpus's numbers of the sentences; `first` (k + 1,) are offsets of the chunks into them.
    """

    of: Numbers
    distinct: Numbers
    asked: Numbers
    word: Numbers
    owner: Numbers
    sentences: Numbers
    first: Numbers

    @classmethod
    def read(cls, words: Words, chunks: Numbers, of: Numbers) -> ListedWords:
        """Read some chunks."""
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentences, _ = expand_ranges(begin, end)
        first = np.concatenate([[0], (end - begin).cumsum()])
        positions, owner = expand_ranges(*words.of_sentences(sentences))
        numbers = words.numbers[positions]
        kept = np.flatnonzero(~words.stop[numbers])
        owner, size = owner[kept], max(len(words.idf), 1)
        different, word = numbered(of.repeat(end - begin)[owner] * size + numbers[kept])
        asked, number = np.divmod(different, size)
        return cls(of, number, asked, word, owner, sentences, first)

    @cached_property
    def chunk(self) -> Numbers:
        """The chunk of each sentence, (s,), counted here from 0."""
        return np.arange(len(self.first) - 1).repeat(np.diff(self.first))

    @cached_property
    def of_sentence(self) -> Numbers:
        """The question that each sentence is read for, (s,)."""
        return self.of[self.chunk]

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

    def having(self, chosen: Flags) -> Having:
        """Which sentences have which of the v words that are chosen among the distinct ones (m,)."""
        number, hit = chosen.cumsum() - 1, np.flatnonzero(chosen[self.word])
        return Having.of(number[self.word[hit]], self.owner[hit], int(chosen.sum()), len(self.sentences))

    def in_chunks(self, sentences: Having) -> Having:
        """Which chunks have which words, by the sentences that have them."""
        return Having.of(sentences.word, self.chunk[sentences.text], len(sentences.start) - 1, len(self.first) - 1)

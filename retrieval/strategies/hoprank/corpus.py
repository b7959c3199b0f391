"""The data of a corpus and its graph that hoprank computes once per index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE, Mentions, locate
from hopbench.retrieval.strategies.hoprank.random_walk import RandomWalk
from hopbench.retrieval.strategies.hoprank.relations import Relations, relations
from hopbench.retrieval.strategies.hoprank.word_vectors import weighted_sums, word_vectors
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, Words
from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters

KEPT_SENTENCES = 1_000_000  # of whose vectors a table is kept, 0.5 kB each; of more, a question's are made anew: 1 ms


@dataclass(frozen=True, eq=False)
class CorpusIndex:
    """A corpus of n chunks and its graph; `rarity` (m,) is each entity's ln((n + 1)/df) + 1."""

    words: Words
    mentions: Mentions
    walk: RandomWalk
    vectors: Vectors
    rarity: Floats
    graph: Adjacency
    relations: Relations | None

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.vectors)

    @cached_property
    def word_vectors(self) -> NDArray[np.int16]:
        """A vector for each word of the vocabulary, (v, 256)."""
        return word_vectors(list(self.words.vocabulary))

    def sentence_vectors(self, sentences: Numbers) -> NDArray[np.int16]:
        """The words of some sentences by their idf, stop words aside, (k, 256)."""
        words = self.words
        if len(words.sentence_start) <= KEPT_SENTENCES:
            return self._sentence_vectors[sentences]
        begin, end = words.of_sentences(sentences)
        positions, _ = expand_ranges(begin, end)
        start = np.concatenate([[0], (end - begin).cumsum()])
        return weighted_sums(self.word_vectors, self._word_weights, words.numbers[positions], start)

    @cached_property
    def _sentence_vectors(self) -> NDArray[np.int16]:
        words = self.words
        return weighted_sums(self.word_vectors, self._word_weights, words.numbers, words.sentence_start)

    @cached_property
    def _word_weights(self) -> Floats:
        return np.asarray(self.words.idf * ~self.words.stop)

    @cached_property
    def sentence(self) -> Numbers:
        """The sentence of each mention, (r,); meaningless for a mention without a position."""
        return self.words.sentence_of(self.mentions.start)

    @cached_property
    def in_title(self) -> Floats:
        """1 for each mention in a title, (r,)."""
        titles = self.sentence == self.words.chunk_start[self.mentions.chunk]
        return np.asarray(titles & (self.mentions.start != NOWHERE), np.float64)


def corpus_index(batch: Batch, counters: Counters) -> tuple[CorpusIndex, Linker]:
    """The corpus index of the batch, and the linker; the graph is read from the store in three round trips."""
    graph, reader = adjacency(batch, counters), linker(batch, counters)

    def made() -> CorpusIndex:
        chunks = batch.index.chunks
        words = Words.read(chunks)
        rarity = log((len(chunks) + 1) / np.maximum(graph.frequency, 1)) + 1.0
        located = locate(chunks, words, graph, reader)
        stated = relations(batch, Counters(), graph, words)
        return CorpusIndex(words, located, RandomWalk.over(graph), batch.index.vectors, rarity, graph, stated)

    known = batch.index.memo.get("hoprank", made)
    relations(batch, counters, graph, known.words)
    return known, reader

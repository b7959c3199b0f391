"""The data of a corpus and its graph that hoprank computes once per index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE, Mentions, locate
from hopbench.retrieval.strategies.hoprank.random_walk import RandomWalk
from hopbench.retrieval.strategies.hoprank.relations import Relations, relations
from hopbench.retrieval.strategies.hoprank.word_vectors import lengths, on_weight_grid, word_vectors
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, Words
from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.support.csr import compact
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters

VERSION = "texts-4"  # of what is kept in files: it grows with each change of what is read of the texts
_DERIVED = ("word_vectors", "sentence", "in_title", "sentence_lengths")  # properties of `Texts` that are kept as well


@dataclass(frozen=True, eq=False)
class Texts:
    """What is read of all chunks' texts: their words, and where they mention the graph's entities."""

    words: Words
    mentions: Mentions

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], entities: int) -> Texts:
        """The texts whose `arrays` these are."""
        found = cls(Words.of_arrays(arrays), Mentions.of_arrays(arrays, entities))
        vars(found).update({name: arrays[name] for name in _DERIVED if name in arrays})  # as if computed
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays by name."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return {**self.words.arrays(), **self.mentions.arrays(), **derived}

    @cached_property
    def word_vectors(self) -> NDArray[np.int16]:
        """A vector for each word of the vocabulary, (v, 256)."""
        return word_vectors(list(self.words.vocabulary))

    @cached_property
    def sentence_lengths(self) -> Floats:
        """The length of each sentence's vector, the sum of its words' by their weights, (s,)."""
        words = self.words
        return lengths(self.word_vectors, self.word_weights, words.numbers, words.sentence_start)

    @cached_property
    def word_weights(self) -> Floats:
        """What each word of the vocabulary weighs in a sentence, (v,): its idf, nothing for stop words."""
        return on_weight_grid(self.words.idf * ~self.words.stop)

    @cached_property
    def sentence(self) -> Numbers:
        """The sentence of each mention, (r,); meaningless for a mention without a position."""
        return compact(self.words.sentence_of(self.mentions.start))

    @cached_property
    def in_title(self) -> Flags:
        """Which mentions stand in a title, (r,)."""
        titles = self.sentence == self.words.chunk_start[self.mentions.chunk]
        return np.asarray(titles & (self.mentions.start != NOWHERE))


@dataclass(frozen=True, eq=False)
class CorpusIndex:
    """A corpus of n chunks and its graph; `rarity` (m,) is each entity's ln((n + 1)/df) + 1."""

    texts: Texts
    walk: RandomWalk
    vectors: Vectors
    rarity: Floats
    graph: Adjacency
    relations: Relations | None

    @property
    def words(self) -> Words:
        """The chunks' words."""
        return self.texts.words

    @property
    def mentions(self) -> Mentions:
        """Where the chunks mention the graph's entities."""
        return self.texts.mentions

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.vectors)


def corpus_index(batch: Batch, counters: Counters) -> tuple[CorpusIndex, Linker]:
    """The corpus index of the batch, and the linker; the graph is read from the store in three round trips."""
    graph, reader = adjacency(batch, counters), linker(batch, counters)

    def made() -> CorpusIndex:
        chunks = batch.index.chunks
        texts = _texts(batch, graph, reader)
        rarity = log((len(chunks) + 1) / np.maximum(graph.frequency, 1)) + 1.0
        stated = relations(batch, Counters(), graph, texts.words)
        return CorpusIndex(texts, RandomWalk.over(graph, batch.index), batch.index.vectors, rarity, graph, stated)

    known = batch.index.memo.get("hoprank", made)
    relations(batch, counters, graph, known.words)
    return known, reader


def _texts(batch: Batch, graph: Adjacency, reader: Linker) -> Texts:
    """Read from the chunks, or from the files in which an earlier process kept it."""

    def read() -> Texts:
        words = Words.read(batch.index.chunks, reader.language)
        return Texts(words, locate(batch.index.chunks, words, graph, reader))

    if (place := batch.index.kept_of_graph()) is None:
        return read()
    kept, stamp = place
    arrays = kept.arrays("hoprank", f"{VERSION} of {stamp}", lambda: read().arrays())
    return Texts.of_arrays(arrays, len(graph.entities))

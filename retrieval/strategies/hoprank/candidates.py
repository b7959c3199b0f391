"""The candidate chunks of one question: its pool, then the targets of followed edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.strategies.hoprank.base_features import BASE_FEATURES, ChunkFacts
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.pool import CandidatePool
from hopbench.retrieval.strategies.hoprank.question import UNKNOWN, ReadQuestion
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, columns, distinct
from hopbench.retrieval.support.csr import expand_ranges


class Candidates:
    """One question's candidates, a row each: `covered` (c, w), the question words in each, and `base` (c, 12).

    The pool comes first: what its chunks have in common, features of all others are measured against.
    """

    def __init__(self, corpus: CorpusIndex, question: ReadQuestion, vector: Vectors, pool: CandidatePool) -> None:
        """`vector` (d,) is the question's."""
        self.corpus, self.question, self.vector, self.pool = corpus, question, vector, pool
        self.in_pool = Lookup.marks(pool.chunks)
        self.covered: Flags = np.zeros((0, len(question.numbers)), bool)
        self.base: Floats = np.zeros((0, len(BASE_FEATURES)))
        self._row = Lookup(np.zeros(0, np.int64), np.zeros(0, np.int64), otherwise=-1)
        self._together: Floats | None = None
        self.rows(pool.chunks)

    def rows(self, chunks: NDArray[Any]) -> Numbers:
        """The rows of chunks; chunks that are no candidates yet are added."""
        rows = self._row[chunks]
        new = distinct(chunks[rows < 0])
        if len(new):
            numbers = np.concatenate([self._row.values, len(self.base) + np.arange(len(new))])
            self._row = Lookup.of(np.concatenate([self._row.keys, new]), numbers, otherwise=-1)
            facts = self._facts(new)
            self.covered = np.concatenate([self.covered, facts.covered])
            self.base = np.concatenate([self.base, columns([feature(facts) for feature in BASE_FEATURES])])
            rows = self._row[chunks]
        return np.asarray(rows)

    def features(self, chunks: NDArray[Any]) -> Floats:
        """Base features of chunks, (k, 12)."""
        rows = self.rows(chunks)
        return self.base[rows]

    def _facts(self, chunks: Numbers) -> ChunkFacts:
        words, question, pool = self.corpus.words, self.question, self.pool
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentence, _ = expand_ranges(begin, end)
        by_sentence = question.covered(words, *words.of_sentences(sentence))
        first = (end - begin).cumsum() - (end - begin)  # a chunk has a sentence at least, its title
        covered = np.logical_or.reduceat(by_sentence, first, axis=0)
        if self._together is None:
            self._together = covered.T.astype(np.float64) @ covered
        return ChunkFacts(
            question=question,
            scales=pool.scales,
            bm25=pool.bm25(chunks),
            cosine=cosines(self.corpus.vectors, chunks, self.vector),
            mass=pool.mass[chunks],
            link=pool.link[chunks],
            covered=covered,
            best_sentence=np.maximum.reduceat(question.share(by_sentence), first),
            title_found=self._title_found(chunks),
            together=self._together,
        )

    def _title_found(self, chunks: Numbers) -> Floats:
        """Σ idf of the title's words that stand in the question / Σ idf of the title's words, stop words aside."""
        words = self.corpus.words
        position, owner = expand_ranges(*words.of_titles(chunks))
        number = words.numbers[position]
        idf = words.idf[number] * ~words.stop[number]
        asked = self.question.which(number) != UNKNOWN
        total = np.bincount(owner, idf, len(chunks))
        return np.asarray(np.bincount(owner, idf * asked, len(chunks)) / np.where(total > 0, total, 1.0))

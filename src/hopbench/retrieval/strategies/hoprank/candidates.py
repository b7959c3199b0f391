"""The candidate chunks of questions: their pools, then the targets of followed edges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.strategies.hoprank.base_features import BASE_FEATURES, ChunkFacts
from hopbench.retrieval.strategies.hoprank.closeness import question_vectors
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.pool import CandidatePool
from hopbench.retrieval.strategies.hoprank.questions import Questions, parts_of
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, columns
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.support.distinct import distinct


class Candidates:
    """The candidates of several questions side by side, a row each, by their keys (`questions`).

    `covered` (c, w) are the words of its question in each, and `base` (c, 12). The pool comes first: what its chunks
    have in common, features of all others are measured against.
    """

    def __init__(self, corpus: CorpusIndex, questions: Questions, vectors: Vectors, pool: CandidatePool) -> None:
        """`vectors` (q, d) are the questions'."""
        self.corpus, self.questions, self.vectors, self.pool = corpus, questions, vectors, pool
        self.in_pool = Lookup.marks(pool.chunks)
        self.covered: Flags = np.zeros((0, questions.numbers.shape[1]), bool)
        self.base: Floats = np.zeros((0, len(BASE_FEATURES)))
        self._row = Lookup(np.zeros(0, np.int64), np.zeros(0, np.int64), otherwise=-1)
        self._together: Sequence[Floats] = ()
        self.rows(pool.chunks)

    @cached_property
    def word_vectors(self) -> Sequence[NDArray[np.int16]]:
        """The vectors of each question's words, (w, 256)."""
        return question_vectors(self.corpus, self.questions)

    def rows(self, keys: NDArray[Any]) -> Numbers:
        """The rows of chunks; those that are no candidates yet are added."""
        rows = self._row[keys]
        new = distinct(keys[rows < 0])
        if len(new):
            numbers = np.concatenate([self._row.values, len(self.base) + np.arange(len(new))])
            self._row = Lookup.of(np.concatenate([self._row.keys, new]), numbers, otherwise=-1)
            facts = self._facts(new)
            self.covered = np.concatenate([self.covered, facts.covered])
            self.base = np.concatenate([self.base, columns([feature(facts) for feature in BASE_FEATURES])])
            rows = self._row[keys]
        return np.asarray(rows)

    def features(self, keys: NDArray[Any]) -> Floats:
        """Base features of chunks, (k, 12)."""
        rows = self.rows(keys)
        return self.base.take(rows, axis=0)

    def _facts(self, keys: Numbers) -> ChunkFacts:
        words, questions, pool, vectors = self.corpus.words, self.questions, self.pool, self.corpus.vectors
        of, chunks = np.divmod(keys, self.corpus.chunks)
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentence, chunk = expand_ranges(begin, end)
        of_sentence = of[chunk]
        by_sentence = questions.covered(words.numbers, *words.of_sentences(sentence), of_sentence)
        first = (end - begin).cumsum() - (end - begin)  # a chunk has a sentence at least, its title
        covered = np.logical_or.reduceat(by_sentence, first, axis=0)
        asking = list(enumerate(parts_of(of, len(questions))))
        if not self._together:
            asked = [covered[rows, : len(questions[number].words)] for number, rows in asking]
            self._together = [one.T.astype(np.float64) @ one for one in asked]
        return ChunkFacts(
            questions=questions,
            of=of,
            scales=pool.scales,
            bm25=np.concatenate([pool.bm25[number](chunks[rows]) for number, rows in asking]),
            cosine=np.concatenate([cosines(vectors, chunks[rows], self.vectors[number]) for number, rows in asking]),
            mass=pool.mass[keys],
            link=pool.link[keys],
            covered=covered,
            best_sentence=np.maximum.reduceat(questions.share(by_sentence, of_sentence), first),
            title_found=self._title_found(chunks, of),
            together=self._together,
        )

    def _title_found(self, chunks: Numbers, of: Numbers) -> Floats:
        """Σ idf of the title's words that stand in the question / Σ idf of the title's words, stop words aside."""
        words = self.corpus.words
        position, owner = expand_ranges(*words.of_titles(chunks))
        number = words.numbers[position]
        idf = words.idf[number] * ~words.stop[number]
        asked = self.questions.asks(number, of[owner])
        total = np.bincount(owner, idf, len(chunks))
        return np.asarray(np.bincount(owner, idf * asked, len(chunks)) / np.where(total > 0, total, 1.0))

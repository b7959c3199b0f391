"""The chunks that one question looks at: a pool to begin with, then whatever edges lead to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.search import FLOAT32_DECIMALS, best_rows
from retrieval.strategies.baselines import hybrid_rankings
from retrieval.strategies.hoprank.base_features import BASE_FEATURES, ChunkFacts, Scales
from retrieval.strategies.hoprank.evidence import Evidence
from retrieval.strategies.hoprank.question import ReadQuestion
from retrieval.strategies.hoprank.words import Flags, Floats, Numbers, ranges
from retrieval.index import Batch

WALK_SEEDS = 3


class Candidates:
    """One question's candidate chunks, a row each: which of its words they cover, their scores and base features."""

    def __init__(
        self, seen: Evidence, question: ReadQuestion, batch: Batch, number: int, depth: int, walked: int
    ) -> None:
        """`depth` chunks of BM25 and as many by cosine, `walked` of the walk, and the linked titles make the pool."""
        self.seen, self.question, self.vector = seen, question, batch.vectors[number]
        lexical, dense = batch.lexical[number], batch.dense[number]
        self._bm25 = batch.index.lexical.scores(batch.questions[number].text)
        self._mass, self.touched = seen.walk.mass(self._seeds(batch, number))
        self._link = np.zeros(seen.chunks)
        self._link[list(question.chunks)] = list(question.chunks.values())
        (walk,) = best_rows(self._mass[None, :], walked)
        walk = walk[self._mass[walk] > 0]
        parts = (lexical.rows[:depth], dense.rows[:depth], walk, np.flatnonzero(self._link))
        self.pool: Numbers = np.unique(np.concatenate(parts)).astype(np.int64)
        self.in_pool = np.zeros(seen.chunks, bool)
        self.in_pool[self.pool] = True
        cosines = dense.scores[:depth]
        self.scales = Scales(
            float(self._bm25.max(initial=0.0)),
            float(cosines[0]),
            float(cosines[-1]),
            float(self._mass.max(initial=0.0)),
        )
        self._row = np.full(seen.chunks, -1, np.int64)
        self.chunks: Numbers = np.zeros(0, np.int64)
        self.covered: Flags = np.zeros((0, len(question.numbers)), bool)
        self.base: Floats = np.zeros((0, len(BASE_FEATURES)))
        self.rows(self.pool)

    def _seeds(self, batch: Batch, number: int) -> Floats:
        """Where the walk begins: half on the best of RRF, half on the linked entities by rarity; all on one without the other."""
        entities = self.seen.walk.entities
        seeds = np.zeros(entities + self.seen.chunks)
        best = hybrid_rankings(batch, fusion="rrf")[number][:WALK_SEEDS]
        for chunk, score in best:
            seeds[entities + batch.index.row_of[chunk]] = score / sum(score for _, score in best)
        linked = list(self.question.entities)
        if linked:
            seeds[linked] = self.seen.rarity[linked] / self.seen.rarity[linked].sum()
        return seeds / max(seeds.sum(), 1.0)

    def rows(self, chunks: NDArray[Any]) -> Numbers:
        """The candidates' rows of chunks; chunks that are no candidates yet become ones."""
        new = np.unique(chunks[self._row[chunks] < 0])
        if len(new):
            self._row[new] = len(self.chunks) + np.arange(len(new))
            facts = self._facts(new)
            self.chunks = np.concatenate([self.chunks, new])
            self.covered = np.concatenate([self.covered, facts.covered])
            features = np.stack([feature(facts) for feature in BASE_FEATURES], axis=1)
            self.base = np.concatenate([self.base, features])
        return self._row[chunks]

    def _facts(self, chunks: Numbers) -> ChunkFacts:
        words, question = self.seen.words, self.question
        sentence, owner = ranges(words.chunk_start[chunks], words.chunk_start[chunks + 1])
        by_sentence = question.covered(words, *words.of_sentences(sentence))
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        return ChunkFacts(
            question=question,
            scales=self.scales,
            bm25=self._bm25[chunks],
            cosine=self.cosines(chunks),
            mass=self._mass[chunks],
            link=self._link[chunks],
            covered=np.logical_or.reduceat(by_sentence, first, axis=0),
            best_sentence=np.maximum.reduceat(question.share(by_sentence), first),
            title_found=self._title_found(chunks),
        )

    def _title_found(self, chunks: Numbers) -> Floats:
        """Σ idf of the title's words that stand in the question / Σ idf of the title's words, stop words aside."""
        words = self.seen.words
        position, owner = ranges(*words.of_titles(chunks))
        number = words.numbers[position]
        idf = words.idf[number] * ~words.stop[number]
        found = np.isin(number, self.question.numbers)
        total = np.bincount(owner, idf, len(chunks))
        return np.bincount(owner, idf * found, len(chunks)) / np.where(total > 0, total, 1.0)

    def cosines(self, chunks: Numbers) -> Floats:
        """Cosines with the question, as precise as float32 sums are."""
        return (self.seen.vectors[chunks] @ self.vector).astype(np.float64).round(FLOAT32_DECIMALS)

"""Questions put to an index together.

A batch computes once what several strategies need: vectors, BM25 and dense candidates. The same query with the same
parameters is sent to the store once, and each strategy that asks for it is charged the round trip it would have cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph.stores.base import Record, rows_of
from hopbench.retrieval.index.cache import Memo
from hopbench.retrieval.index.index import Index
from hopbench.retrieval.index.linker import Link, Linker
from hopbench.retrieval.search.exact import DEPTH, TopRows, cosines
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.types import Counters, Question

BATCH_VALUES = 16  # of `Batch.memo`


@dataclass(eq=False)
class Batch:
    """Questions put to an index together. `alone` reads past all caches: for measuring the latency of one call.

    `processes` is how many processes a strategy may divide them among, this one and forks of it.
    """

    index: Index
    questions: Sequence[Question]
    alone: bool = False
    processes: int = 1

    @cached_property
    def vectors(self) -> Vectors:
        """Question vectors, shape (q, d)."""
        return self.index.embed([question.text for question in self.questions])

    @cached_property
    def dense(self) -> list[TopRows]:
        """The best `DEPTH` chunks of each question by cosine."""
        return self.index.nearest(self.vectors, DEPTH)

    @cached_property
    def lexical(self) -> list[TopRows]:
        """The best `DEPTH` chunks of each question by BM25."""
        return self.index.lexical.top([question.text for question in self.questions], DEPTH)

    @cached_property
    def vector_rankings(self) -> list[Scored]:
        """`dense` as chunk ids with scores."""
        return self.all_with_ids(self.dense)

    @cached_property
    def bm25_rankings(self) -> list[Scored]:
        """`lexical` as chunk ids with scores."""
        return self.all_with_ids(self.lexical)

    @cached_property
    def memo(self) -> Memo:
        """Results that strategies computed from the batch and share."""
        return Memo(BATCH_VALUES)

    @cached_property
    def _links(self) -> dict[int, list[Link]]:
        return {}

    def links(self, linker: Linker, numbers: Sequence[int] | None = None) -> list[list[Link]]:
        """The names of the index's graph in each question of the batch, or in some by number; read once each."""
        wanted, known = range(len(self.questions)) if numbers is None else numbers, self._links
        known |= {number: linker.links(self.questions[number].text) for number in wanted if number not in known}
        return [known[number] for number in wanted]

    def with_ids(self, top: TopRows) -> Scored:
        """Ranked rows as chunk ids with scores."""
        return self.all_with_ids([top])[0]

    def all_with_ids(self, tops: Sequence[TopRows]) -> list[Scored]:
        """Several rankings of rows, each as chunk ids with scores."""
        ids = self.index.ids
        rows = np.concatenate([np.zeros(0, np.intp), *(top.rows for top in tops)]).tolist()
        scores = np.concatenate([np.zeros(0), *(top.scores for top in tops)]).tolist()
        pairs = list(zip([ids[row] for row in rows], scores, strict=True))
        ends = list(accumulate(len(top.rows) for top in tops))
        return [pairs[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    def cosines(self, question: int, chunk_ids: Sequence[str]) -> dict[str, float]:
        """Raw cosines of chunks with one question of the batch, by chunk id."""
        rows = [self.index.row_of[chunk] for chunk in chunk_ids]
        values = cosines(self.index.vectors, rows, self.vectors[question])
        return dict(zip(chunk_ids, values.tolist(), strict=True))

    def read(self, counters: Counters, query: str, **parameters: object) -> list[Record]:
        """Read from the store, charging `counters` a round trip and its rows."""
        records, rows = self.read_uncharged(query, **parameters)
        counters.round_trips += 1
        counters.rows += rows
        return records

    def read_uncharged(self, query: str, **parameters: object) -> tuple[list[Record], int]:
        """Read from the store; the records and their number of rows, for a caller that charges only what it uses."""
        if self.alone:
            records = self.index.store.read(query, **parameters)
            return records, sum(map(rows_of, records))
        return self.index.reads.read(self.index.store, query, parameters)

    def floor(self, strategy: str, parameter: str, threshold: float) -> float:
        """How far down to read for a threshold: the threshold itself, or the lowest that a coming trial asks for."""
        return threshold if self.alone else min(threshold, self.index.floors.get((strategy, parameter), threshold))

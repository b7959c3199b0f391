"""What a strategy searches: an index over one corpus and its graph, and a batch of questions put to it.

A batch computes what several strategies need (vectors, BM25 and dense candidates) once. Reads of the store are kept as
well: the same query with the same parameters is not sent twice, and each strategy that asked for it is charged the
round trip it would have cost alone.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.graph.stores.base import GraphStore, Record, rows_of
from hopbench.retrieval.search.exact import DEPTH, Candidates, LexicalIndex, cosines, dense_top
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk, Counters, Question, Source

KEPT_ROWS = 20_000_000
EXACT = "exact"
KEPT_VALUES = 16
T = TypeVar("T")


class ReadCache:
    """Records by query and parameters; the oldest go when more than `KEPT_ROWS` rows are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[list[Record], int]] = OrderedDict()
        self._rows = 0
        self._lock = Lock()

    def read(self, store: GraphStore, query: str, parameters: Mapping[str, object]) -> tuple[list[Record], int]:
        """The records of a query and the rows in them."""
        key = query + json.dumps(parameters, sort_keys=True)
        found = self._kept.get(key)
        if found is None:
            records = store.read(query, **parameters)
            found = records, sum(map(rows_of, records))
            with self._lock:  # threads may share an index
                self._keep(key, found)
        return found

    def _keep(self, key: str, found: tuple[list[Record], int]) -> None:
        self._rows += found[1] - self._kept.get(key, ([], 0))[1]
        self._kept[key] = found
        while self._rows > KEPT_ROWS and len(self._kept) > 1:
            self._rows -= self._kept.popitem(last=False)[1][1]


class Kept:
    """What strategies computed from a batch, by a name that tells its parameters; the oldest of many goes.

    Each value stays with what it cost, so that each strategy that uses it is charged as if it were alone.
    """

    def __init__(self, limit: int = KEPT_VALUES) -> None:
        self._limit = limit
        self._lock = Lock()
        self._values: OrderedDict[Hashable, tuple[Any, Counters]] = OrderedDict()

    def of(self, name: Hashable, counters: Counters, make: Callable[[Counters], T]) -> T:
        """The value of that name, made if it is not there; `counters` are charged what it cost."""
        found = self._values.get(name)
        if found is None:
            spent = Counters()
            found = make(spent), spent
        with self._lock:  # threads may share a batch
            self._values[name] = found
            self._values.move_to_end(name)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        counters.add(found[1])
        return found[0]


@dataclass(eq=False)
class Index:
    """A corpus ready to be searched. `chunks` are sorted by id; `vectors` is (n, d), a row per chunk.

    `search` names how chunks are searched by vector, and `native` does it where that is not `EXACT`.

    `floors` are the lowest thresholds that trials to come will ask for, by (strategy, parameter): edges are read once
    down to there, and each trial leaves out what is below its own.
    """

    chunks: Sequence[Chunk]
    vectors: Vectors
    store: GraphStore
    embedder: Embedder
    reads: ReadCache = field(default_factory=ReadCache)
    shared: dict[str, Any] = field(default_factory=dict)
    search: str = EXACT
    native: NativeSearch | None = None
    floors: dict[tuple[str, str], float] = field(default_factory=dict)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the chunks."""
        return LexicalIndex([chunk.content for chunk in self.chunks])

    @cached_property
    def tagger(self) -> Tagger:
        """The tagger that gave the graph's edges their tags: fitted on the chunks' contents."""
        return Tagger(chunk.content for chunk in self.chunks)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Chunk id → row."""
        return {chunk.id: row for row, chunk in enumerate(self.chunks)}

    @cached_property
    def passage_of(self) -> Mapping[str, str]:
        """Chunk id → passage id."""
        return {chunk.id: chunk.passage_id for chunk in self.chunks}

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Chunk id → where it stands in its file, of the chunks for which the corpus says so."""
        return {chunk.id: chunk.source for chunk in self.chunks if chunk.source}

    @classmethod
    def build(cls, chunks: Sequence[Chunk], store: GraphStore, embedder: Embedder) -> Index:
        """Embed the chunks (the cache has them after a graph build) and put everything together."""
        return cls(chunks, embedder.embed([chunk.content for chunk in chunks]), store, embedder)

    def __post_init__(self) -> None:
        """Put the vectors on the grid, where their products are exact, whatever embedder they come from."""
        self.vectors = on_grid(self.vectors)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts, on the grid."""
        return on_grid(self.embedder.embed(texts))

    def nearest(self, vectors: Vectors, depth: int) -> list[Candidates]:
        """The best `depth` chunks by cosine for each row of `vectors`, shape (q, d)."""
        return dense_top(vectors, self.vectors, depth) if self.native is None else self.native(self, vectors, depth)


NativeSearch = Callable[[Index, Vectors, int], list[Candidates]]


@dataclass(eq=False)
class Batch:
    """Questions put to an index together. `alone` keeps nothing for others: for measuring one call's latency."""

    index: Index
    questions: Sequence[Question]
    alone: bool = False

    @cached_property
    def vectors(self) -> Vectors:
        """Question vectors, shape (q, d)."""
        return self.index.embed([question.text for question in self.questions])

    @cached_property
    def dense(self) -> list[Candidates]:
        """The best `DEPTH` chunks of each question by cosine."""
        return self.index.nearest(self.vectors, DEPTH)

    @cached_property
    def lexical(self) -> list[Candidates]:
        """The best `DEPTH` chunks of each question by BM25."""
        return self.index.lexical.top([question.text for question in self.questions], DEPTH)

    @cached_property
    def vector_rankings(self) -> list[Scored]:
        """Each question's dense candidates with chunk ids in place of rows."""
        return [self.named(candidates) for candidates in self.dense]

    @cached_property
    def bm25_rankings(self) -> list[Scored]:
        """Each question's BM25 candidates with chunk ids in place of rows."""
        return [self.named(candidates) for candidates in self.lexical]

    @cached_property
    def kept(self) -> Kept:
        """What strategies computed from the batch and others may use again."""
        return Kept()

    def named(self, candidates: Candidates) -> Scored:
        """Candidates with chunk ids in place of rows."""
        ids = self.index.chunks
        return [(ids[row].id, float(score)) for row, score in zip(candidates.rows, candidates.scores, strict=True)]

    def cosines(self, question: int, chunk_ids: Sequence[str]) -> dict[str, float]:
        """Raw cosines of chunks with one question of the batch."""
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
        """Read from the store; the records and the rows in them, for a caller that uses only some of them."""
        if self.alone:
            records = self.index.store.read(query, **parameters)
            return records, sum(map(rows_of, records))
        return self.index.reads.read(self.index.store, query, parameters)

    def floor(self, strategy: str, parameter: str, threshold: float) -> float:
        """How far down to read for a threshold: it, or the lowest that trials to come will ask for."""
        return threshold if self.alone else min(threshold, self.index.floors.get((strategy, parameter), threshold))

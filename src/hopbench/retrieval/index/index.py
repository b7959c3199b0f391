"""An index: one corpus with its vectors, its BM25 index and its graph, ready for questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.corpus import MappedChunks, ids_of
from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.graph.schema import CHUNK
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore, Record, rows_of
from hopbench.retrieval.index.cache import Arrays, IndexCache, Memo, ReadCache
from hopbench.retrieval.index.linker import Link, Linker, Services
from hopbench.retrieval.search.approximate import VERSION as GRAPH_VERSION
from hopbench.retrieval.search.approximate import ApproximateSearch
from hopbench.retrieval.search.cells import MIN_ROWS, SAMPLE, CellSearch, Queries
from hopbench.retrieval.search.cells import VERSION as CELLS_VERSION
from hopbench.retrieval.search.exact import DEPTH, LexicalIndex, TopRows, cosines, dense_top
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.search.term_counts import PLAIN, LexicalFields, TermCounts
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.texts import Texts, TextsOfRows
from hopbench.retrieval.support.timing import done_once
from hopbench.retrieval.text import Language, Tagger, detect, sampled
from hopbench.retrieval.types import Chunk, Counters, Question, Source

T = TypeVar("T", bound=np.generic)

EXACT = "exact"
APPROXIMATE = f"{GRAPH_VERSION} {CELLS_VERSION}"  # by a graph of near chunks, and by cells of names
LINKED_A_MINUTE = 120_000  # chunks, at a million: for what is said of it
INDEX_VALUES = 64  # of `Index.memo`: matrices as large as the graph, several for each setting of a sweep


@dataclass(eq=False)
class Index:
    """A corpus ready to be searched. `chunks` are sorted by id; `vectors` is (n, d), a row per chunk.

    `search` names the method of vector search; `native` performs it where that is not `EXACT`. `memo` holds what
    strategies computed from the graph alone. `floors` are the lowest thresholds of the trials to come, by (strategy,
    parameter): edges are read once down to there. `kept` has the cached files, `graph_ids` the ids of the graph's
    chunks where the store maps them and they are those of `chunks`, row by row.
    """

    chunks: Sequence[Chunk]
    vectors: Vectors
    store: GraphStore
    embedder: Embedder
    reads: ReadCache = field(default_factory=ReadCache)
    services: Services = field(default_factory=Services)
    memo: Memo = field(default_factory=lambda: Memo(INDEX_VALUES, done_once))
    search: str = EXACT
    native: NativeSearch | None = None
    floors: dict[tuple[str, str], float] = field(default_factory=dict)
    kept: IndexCache | None = None
    graph_ids: Texts | None = None
    known_language: Language | None = None

    @cached_property
    @done_once()
    def language(self) -> Language:
        """The corpus's language: as it is known, as the graph was built with it, or as the chunks tell it."""
        if self.known_language is not None:
            return self.known_language
        settings = (self.store.record() or {}).get("settings") or {}
        code = settings.get("language")
        return Language(code) if code else detect(self.chunks[row].content for row in sampled(len(self.chunks)))

    @cached_property
    @done_once()
    def lexical(self) -> LexicalIndex:
        """BM25 over the chunks."""
        kept, chunks, language = self.kept, self.chunks, self.language
        if kept is None:
            return LexicalIndex([chunk.content for chunk in chunks], language)
        return kept.lexical(lambda: LexicalIndex([chunk.content for chunk in chunks], language), language)

    def terms(self, fields: LexicalFields) -> TermCounts:
        """The counts of terms by which BM25 with these fields is computed; k1, b and the title's weight share them."""
        kept, chunks, language = self.kept, self.chunks, self.language

        def counted() -> TermCounts:
            return TermCounts.fit(chunks, language, fields)

        def found() -> TermCounts:
            return counted() if kept is None else kept.terms(counted, language, fields)

        return self.memo.get(("terms", fields.stemmer, fields.parts), found)

    @cached_property
    @done_once()
    def tagger(self) -> Tagger:
        """The tagger that gave the graph's edges their tags: fitted on the chunks' contents."""
        kept, chunks, language = self.kept, self.chunks, self.language
        if kept is None:
            return Tagger((chunk.content for chunk in chunks), language)
        return kept.tagger(lambda: Tagger((chunk.content for chunk in chunks), language), language)

    @cached_property
    @done_once()
    def approximate(self) -> ApproximateSearch:
        """Dense search without looking at all chunks; made once, which takes minutes at a million."""

        def computed() -> ApproximateSearch:
            if (minutes := len(self.chunks) // LINKED_A_MINUTE) > 0:
                notice(f"linking {len(self.chunks):,} chunks for approximate dense search, once: about {minutes} min")
            found = ApproximateSearch.fit(self.vectors)
            notice(str(found))
            return found

        return computed() if self.kept is None else self.kept.approximate(computed)

    @cached_property
    @done_once()
    def ids(self) -> Sequence[str]:
        """The ids of the chunks, by row."""
        return ids_of(self.chunks)

    def some_ids(self, rows: NDArray[np.int64]) -> list[str]:
        """The ids of some chunks: of a mapped corpus, without a list of all."""
        if isinstance(self.chunks, MappedChunks):
            return self.chunks.some_ids(rows)
        return [self.chunks[row].id for row in rows.tolist()]

    @cached_property
    @done_once()
    def row_of(self) -> Mapping[str, int]:
        """Chunk id → row."""
        return {chunk: row for row, chunk in enumerate(self.ids)}

    def rows(self, lists: Iterable[Sequence[str]]) -> NDArray[np.int64]:
        """The rows of chunks by their ids, lists laid end to end. Raises KeyError for an unknown one.

        Where the graph's rows are the index's, ids that its store has not read yet are not read for this.
        """
        lists, own = list(lists), self.graph_ids
        known = [ids.rows for ids in lists if isinstance(ids, TextsOfRows) and ids.texts is own]
        if lists and len(known) == len(lists):
            return np.concatenate(known)
        return np.array([self.row_of[chunk] for ids in lists for chunk in ids], np.int64)

    @cached_property
    @done_once()
    def passage_of(self) -> Mapping[str, str]:
        """Chunk id → passage id."""
        if isinstance(self.chunks, MappedChunks):
            return dict(zip(self.ids, self.chunks.passage_ids, strict=True))
        return {chunk.id: chunk.passage_id for chunk in self.chunks}

    @cached_property
    @done_once()
    def sources(self) -> Mapping[str, Source]:
        """Chunk id → source (file, page), of the chunks for which the corpus has one."""
        if isinstance(self.chunks, MappedChunks) and not self.chunks.passages.sourced:
            return {}
        return {chunk.id: chunk.source for chunk in self.chunks if chunk.source}

    def forget(self) -> None:
        """Give back what strategies computed and read of a mapped graph (0.4 GB at a million passages)."""
        if isinstance(self.store, ArrayStore):
            self.memo.clear()
            self.reads = ReadCache()

    def kept_of_graph(self) -> tuple[IndexCache, str] | None:
        """Where what is computed from the graph alone is kept, and the stamp of the graph; None where nothing is."""
        if self.kept is None or (stamp := self.store.stamp()) is None:
            return None
        # Two stores may hold the graph of one build: neither takes the place of what is kept of the other.
        folder = self.kept.folder
        if not isinstance(self.store, ArrayStore):
            folder = folder.with_name(f"{folder.name}.{self.store.engine}")
        return IndexCache(folder), stamp

    def graph_arrays(self, name: str, version: str, compute: Callable[[], Arrays]) -> Arrays:
        """Arrays that are computed from the graph alone, memory-mapped where they are kept; `version` is the code's."""
        place = self.kept_of_graph()
        return compute() if place is None else place[0].arrays(name, f"{version} of {place[1]}", compute)

    @classmethod
    def build(
        cls,
        chunks: Sequence[Chunk],
        store: GraphStore,
        embedder: Embedder,
        kept: IndexCache | None = None,
        language: Language | None = None,
    ) -> Index:
        """Put everything together; the vectors are the store's, where it maps them, cached ones, or the embedder's."""
        mapped, graph_ids = isinstance(store, ArrayStore), None
        vectors = store.chunk_vectors(chunks) if isinstance(store, ArrayStore) else None
        if isinstance(store, ArrayStore) and vectors is not None:
            graph_ids = store.graph.nodes[CHUNK].ids
        elif kept is None or mapped:
            vectors = embedder.embed([chunk.content for chunk in chunks])
        else:
            vectors = kept.vectors(lambda: embedder.embed([chunk.content for chunk in chunks]))
        return cls(chunks, vectors, store, embedder, kept=kept, graph_ids=graph_ids, known_language=language)

    def __post_init__(self) -> None:
        self.vectors = on_grid(self.vectors)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts, on the grid."""
        return on_grid(self.embedder.embed(texts))

    def nearest(self, vectors: Vectors, depth: int) -> list[TopRows]:
        """The best `depth` chunks by cosine for each row of `vectors`, shape (q, d)."""
        return dense_top(vectors, self.vectors, depth) if self.native is None else self.native(self, vectors, depth)


NativeSearch = Callable[[Index, Vectors, int], list[TopRows]]


def approximate_dense(index: Index, questions: Vectors, depth: int) -> list[TopRows]:
    """The best `depth` chunks of each row of `questions`, shape (q, d), by the index's approximate search."""
    return index.approximate.top(questions, index.vectors, depth)


def nearest_rows(
    index: Index, what: str, vectors: Vectors, asking: Callable[[], Queries], questions: Queries, depth: int
) -> list[TopRows]:
    """The best `depth` of `vectors` (n, d) by cosine for each of the questions.

    Where the index's dense search is approximate, many rows are searched by cells: `asking` then gives a sample of what
    is asked for (`CellSearch.fit`). They depend on the graph alone, and are kept with it under the name `what`.
    """
    if index.search != APPROXIMATE or len(vectors) < MIN_ROWS:
        return dense_top(questions.vectors, vectors, depth)

    def fitted() -> CellSearch:
        notice(f"putting {len(vectors):,} vectors ({what}) into cells, once: a minute for each million")
        found = CellSearch.fit(vectors, asking())
        notice(f"search of {what} is approximate (cells): {found}")
        return found

    def cells() -> CellSearch:
        place = index.kept_of_graph()
        return fitted() if place is None else place[0].cells(what, place[1], vectors, fitted)

    return index.memo.get(("cells", what), cells).top(questions, depth)


def spread(rows: NDArray[T], count: int = SAMPLE) -> NDArray[T]:
    """Some of the rows (n, …), at equal distances."""
    return rows if len(rows) <= count else np.asarray(rows[np.arange(count) * len(rows) // count])


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
    memo: Memo = field(default_factory=lambda: Memo(BATCH_VALUES), init=False)
    _links: dict[int, list[Link]] = field(default_factory=dict, init=False)

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

    def lexical_rankings(self, fields: LexicalFields) -> list[Scored]:
        """Each question's best `DEPTH` chunks by BM25 with these fields; by default `bm25_rankings`."""
        if fields == PLAIN:
            return self.bm25_rankings

        def searched() -> list[Scored]:
            texts = [question.text for question in self.questions]
            return self.all_with_ids(self.index.terms(fields).top(texts, fields, DEPTH))

        return self.memo.get(("bm25", fields), searched)

    def links(self, linker: Linker, numbers: Sequence[int] | None = None) -> list[list[Link]]:
        """The names of the index's graph in each question of the batch, or in some by number; read once each."""
        wanted, known = range(len(self.questions)) if numbers is None else numbers, self._links
        known |= {number: linker.links(self.questions[number].text) for number in wanted if number not in known}
        return [known[number] for number in wanted]

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

"""LightRAG's dual-level retrieval (arXiv 2410.05779), to which ADR-041 refers: entities, communities, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Arrays, Batch, Index, Keywords, Linker, Queries, nearest_rows, spread
from hopbench.retrieval.question.entities import question_keywords
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.search.exact import DEPTH, TopRows, dense_top
from hopbench.retrieval.search.exact import cosines as cosines_of
from hopbench.retrieval.search.fusion import DECIMALS, Scored, rows_by_reciprocal_rank
from hopbench.retrieval.strategies._dual_level_communities import Communities, Descriptions, communities, descriptions
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import SEEDS, initial_rankings, plain_ranking
from hopbench.retrieval.support.arrays import distinct, expand_ranges
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking, Step

IN_COMMUNITY = "IN_COMMUNITY"  # the step from a community to its entity, which is no edge of the graph
NOTED = 5  # entities and communities that the notes list
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Level:
    """One level's result for a question: chunk rows, best first, each with the entity or community that led to it.

    `sources` are rows of entities or numbers of communities, nearest first, with `cosines`; `owners` index them.
    """

    rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    owners: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    sources: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    cosines: Floats = field(default_factory=lambda: np.zeros(0))
    touched: int = 0

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Where each chunk stands in the level, from 0, by its row."""
        return {row: place for place, row in enumerate(self.rows.tolist())}


def chunks_of_entities(
    batch: Batch, q: int, mentions: sparse.csr_array, sources: Rows, cosines: Floats, order: str
) -> Level:
    """The chunks that mention any of the entities `sources` (nearest first), in one of the local orders."""
    columns, owners, _ = _gathered(mentions, sources)
    rows, place = np.unique(columns, return_inverse=True)
    nearest = np.full(len(rows), len(sources), dtype=np.int64)
    np.minimum.at(nearest, place, owners)
    count = np.bincount(place, minlength=len(rows))
    total = np.round(np.bincount(place, cosines[owners], minlength=len(rows)), DECIMALS)
    own = cosines_of(batch.index.vectors, rows, batch.vectors[q])
    keys = {"nearest": nearest, "count": -count, "cosine": -total}[order]
    best = np.lexsort((rows, -own, keys))[:DEPTH]
    return Level(rows[best], nearest[best], sources, cosines, len(columns))


def chunks_of_communities(batch: Batch, q: int, chunks: sparse.csr_array, sources: Rows, cosines: Floats) -> Level:
    """The chunks that mention members of the communities `sources` (nearest first), each by its nearest community."""
    columns, owners, counts = _gathered(chunks, sources)
    first = np.lexsort((owners, columns))
    rows, starts = np.unique(columns[first], return_index=True)
    own = cosines_of(batch.index.vectors, rows, batch.vectors[q])
    nearest, count = owners[first][starts], counts[first][starts]
    best = np.lexsort((rows, -own, -count, nearest))[:DEPTH]
    return Level(rows[best], nearest[best], sources, cosines, int(counts.sum()))


def _gathered(matrix: sparse.csr_array, rows: Rows) -> tuple[Rows, Rows, Floats]:
    positions, owners = expand_ranges(matrix.indptr[rows], matrix.indptr[rows + 1])
    return matrix.indices[positions].astype(np.int64), owners, matrix.data[positions]


def _mentions(
    index: Index, graph: Adjacency, level: Level, rows: Sequence[int], community_of: Rows | None = None
) -> Iterator[tuple[int, Step]]:
    """The entity or community that led to each chunk, and the step to the chunk.

    Of a community, from that of its entities which the chunk mentions with most weight, ties to the smaller id.
    """

    def transposed() -> sparse.csr_array:
        by_chunk = sparse.csr_array(graph.mentions.T)
        by_chunk.sort_indices()
        return by_chunk

    owners = level.owners[np.array([level.place_of[row] for row in rows], np.int64)]
    sources = level.sources[owners]
    entities, of, weights = _gathered(index.memo.get("entities by chunk", transposed), np.array(rows, np.int64))
    leading = np.flatnonzero((entities if community_of is None else community_of[entities]) == sources[of])
    leading = leading[np.lexsort((entities[leading], -weights[leading], of[leading]))]
    best = leading[np.diff(of[leading], prepend=-1) > 0]
    columns = (column.tolist() for column in (sources, level.cosines[owners], entities[best], weights[best]))
    for row, source, cosine, entity, weight in zip(rows, *columns, strict=True):
        yield source, Step(MENTIONED_IN, graph.entities[entity], index.ids[row], weight, cosine)


def _steps(
    index: Index, graph: Adjacency, known: Communities | None, rows: Sequence[int], local: Level, broad: Level
) -> list[tuple[Step, ...]]:
    """To each chunk the steps of the level that ranks it higher, the local one on a tie; none if neither has it."""
    near, far = list[int](), list[int]()
    for row in rows:
        here, there = local.place_of.get(row), broad.place_of.get(row)
        if here is not None and (there is None or here <= there):
            near.append(row)
        elif there is not None:
            far.append(row)
    steps: dict[int, tuple[Step, ...]] = {}
    for row, (_, step) in zip(near, _mentions(index, graph, local, near), strict=True):
        steps[row] = (step,)
    if known is not None:
        for row, (source, step) in zip(far, _mentions(index, graph, broad, far, known.of_entity), strict=True):
            steps[row] = Step(IN_COMMUNITY, f"community:{source}", step.source, step.score, step.score), step
    return [steps.get(row, ()) for row in rows]


VECTORS_VERSION = "entities-1"  # of what is kept in files


@dataclass(frozen=True, kw_only=True)
class DualLevel(Strategy):
    """LightRAG's local and global level over chunks."""

    name: ClassVar[str] = "dual_level"
    summary: ClassVar[str] = "LightRAG, to which ADR-041 refers: chunks of the nearest entities and communities, fused"
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        RELATED_TO: {"global_weight": 0.0},
        MENTIONED_IN: {"mode": "mix", "local_weight": 0.0, "global_weight": 0.0},
    }

    mode: str = param(
        "hybrid", "one level, both fused, or both and vector", choices=("local", "global", "hybrid", "mix")
    )
    entities: int = param(60, "local: entities nearest to the question", 1, 1000)
    communities: int = param(10, "global: communities nearest to the question", 1, 1000)
    min_cosine: float = param(0.2, "cosine that an entity or a community needs", 0.0, 1.0)
    entity_text: str = param(
        "described", "entities are embedded by name and description, or by name", choices=("described", "name")
    )
    use_keywords: bool = param(True, "entities that the question names count as cosine 1")
    local_order: str = param(
        "nearest",
        "local chunks by their nearest entity, by entities mentioned, or by the sum of those entities' cosines",
        choices=("nearest", "count", "cosine"),
    )
    resolution: float = param(1.0, "Leiden's resolution: higher makes smaller communities", 0.01, 100.0)
    max_community: int = param(10, "entities in a community; larger ones are divided again", 2, 100_000)
    min_strength: float = param(0.0, "relations weaker than this make no community", 0.0, 1.0)
    local_weight: float = param(1.0, "weight of the local list in the fusion", 0.0, 10.0)
    global_weight: float = param(1.0, "weight of the global list in the fusion", 0.0, 10.0)
    initial_weight: float = param(1.0, "weight of the initial ranking in mix", 0.0, 10.0)
    initial_ranking: str = param(
        "vector", "what mix adds and falls back to: vector, or RRF of vector and BM25", choices=("vector", "rrf")
    )

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking (or RRF of vector and BM25)."""
        return initial_rankings(batch, self.initial_ranking)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Both levels for the whole batch, then fused question by question."""
        with stage(counters, "keywords"):
            reader, graph = linker(batch, counters), adjacency(batch, counters)
            keywords = question_keywords(batch, counters, reader)
            reads_wording = self.mode != "local" or self.entity_text == "described"
            worded = descriptions(batch, counters) if reads_wording else Descriptions(0, lambda: ({}, {}))
        near = far = [Level()] * len(keywords)
        known: Communities | None = None
        with stage(counters, "local"):
            if self.mode != "global":
                entities = self._entity_vectors(batch, counters, graph, reader, worded)
                near = self._local(batch, counters, graph, keywords, entities)
        with stage(counters, "global"):
            if self.mode != "local":
                with stage(counters, "communities"):
                    known = communities(
                        *(batch, counters, graph, reader, worded),
                        max_size=self.max_community,
                        resolution=self.resolution,
                        min_strength=self.min_strength,
                    )
                far = self._global(batch, counters, keywords, known)
        with stage(counters, "fusion"):
            initial = self.initial(batch)
            levels = enumerate(zip(near, far, strict=True))
            return [self._fused(batch, q, graph, known, *pair, initial[q]) for q, pair in levels]

    def _local(
        self, batch: Batch, counters: Counters, graph: Adjacency, keywords: Sequence[Keywords], entities: Vectors
    ) -> list[Level]:
        index, what = batch.index, f"{self.entity_text} entities"
        questions, levels = Queries(_text_vectors(batch, [one.low for one in keywords])), []
        nearest = nearest_rows(index, what, entities, lambda: Queries(spread(index.vectors)), questions, self.entities)
        for q, near in enumerate(nearest):
            rows = (graph.entity_row.get(entity) for entity in keywords[q].entities)
            named = [row for row in rows if row is not None]
            sources, values = self._passing(near, named if self.use_keywords else [], self.entities)
            levels.append(chunks_of_entities(batch, q, graph.mentions, sources, values, self.local_order))
        counters.edges_touched += sum(level.touched for level in levels)
        return levels

    def _entity_vectors(
        self, batch: Batch, counters: Counters, graph: Adjacency, reader: Linker, worded: Descriptions
    ) -> Vectors:
        """Embeddings of the graph's entities, (m, d) in the adjacency's order, made once and cached with the graph."""

        def embedded() -> Arrays:
            described = worded.entities if self.entity_text == "described" else {}
            name_of = dict(zip(reader.entities, reader.names, strict=True))  # all are needed
            named = ((name_of[entity], described.get(entity, "")) for entity in graph.entities)
            texts = [f"{name}. {text}" if text else name for name, text in named]
            with stage(counters, "entity embedding"):
                return {"vectors": batch.index.embed(texts)}

        name = f"vectors-{self.entity_text}-entities"
        return batch.index.memo.get(
            ("entity vectors", self.entity_text),
            lambda: batch.index.graph_arrays(name, VECTORS_VERSION, embedded)["vectors"],
        )

    def _global(
        self, batch: Batch, counters: Counters, keywords: Sequence[Keywords], known: Communities
    ) -> list[Level]:
        questions, levels = _text_vectors(batch, [one.high for one in keywords]), []
        for q, near in enumerate(dense_top(questions, known.vectors, self.communities)):
            levels.append(chunks_of_communities(batch, q, known.chunks, *self._passing(near, [], self.communities)))
        counters.edges_touched += sum(level.touched for level in levels)
        return levels

    def _passing(self, near: TopRows, named: Sequence[int], limit: int) -> tuple[Rows, Floats]:
        """The best `limit` of the near that have the minimum cosine and of the named, which have 1; ties by row.

        What has no cosine at all is no neighbour, whatever the minimum.
        """
        values = {
            int(row): float(value)
            for row, value in zip(near.rows, near.scores, strict=True)
            if value > 0 and value >= self.min_cosine
        }
        values.update(dict.fromkeys(named, 1.0))
        best = sorted(values, key=lambda row: (-values[row], row))[:limit]
        return np.array(best, dtype=np.int64), np.array([values[row] for row in best])

    def _fused(
        self,
        batch: Batch,
        q: int,
        graph: Adjacency,
        known: Communities | None,
        local: Level,
        broad: Level,
        initial: Scored,
    ) -> Ranking:
        """Reciprocal rank fusion of the levels that the mode asks for; the initial ranking if both are empty."""
        ids = batch.index.ids
        near, far = (
            zip(level.sources[:NOTED].tolist(), level.cosines[:NOTED].tolist(), strict=True) for level in (local, broad)
        )
        notes: dict[str, object] = {"entities": [(graph.entities[row], cosine) for row, cosine in near]}
        notes["communities"] = [
            (f"community:{one}", ", ".join(known.names_of(one)[:3]), cosine) for one, cosine in far if known
        ]
        if not len(local.rows) and not len(broad.rows):
            notes["fallback"] = f"no entity or community is near the question: the {self.initial_ranking} ranking"
            return plain_ranking(batch.questions[q], initial, self.initial_ranking, notes)
        lists = {"local": local.rows, "global": broad.rows}
        weights = {"local": self.local_weight, "global": self.global_weight, "initial": self.initial_weight}
        if self.mode == "mix":
            lists["initial"] = np.array([batch.index.row_of[chunk] for chunk, _ in initial], np.int64)
        rows, scores, parts = rows_by_reciprocal_rank(lists, weights, KEEP)
        led = (parts["local"] > 0) | (parts["global"] > 0)
        best = list(zip([ids[row] for row in rows.tolist()], scores, strict=True))

        def made(places: range) -> list[Hit]:
            some = rows[places.start : places.stop].tolist()
            steps = _steps(batch.index, graph, known, some, local, broad)
            hits = []
            for place, path in zip(places, steps, strict=True):
                components = {name: values.item(place) for name, values in parts.items()}
                hits.append(Hit(*best[place], "graph" if led[place] else "seed", components, path))
            return hits

        notes["found"] = len(local.rows) + len(broad.rows)
        notes["unique"] = len(distinct(np.concatenate([local.rows, broad.rows])))
        notes["kept"] = int(led.sum())
        seeds = [ids[row] for row in (local.rows if len(local.rows) else broad.rows)[:SEEDS].tolist()]
        return Ranking(batch.questions[q].id, LazyHits(best, made), seeds, notes)


def _text_vectors(batch: Batch, texts: Sequence[str]) -> Vectors:
    """Embeddings of keyword texts; the batch has those of the questions themselves."""
    if all(text == question.text for text, question in zip(texts, batch.questions, strict=True)):
        return batch.vectors
    return batch.index.embed(texts)

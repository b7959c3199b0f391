"""LightRAG's dual-level retrieval (arXiv 2410.05779), to which ADR-041 refers: entities, communities, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

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
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.arrays import distinct, expand_ranges
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking, Step

IN_COMMUNITY = "IN_COMMUNITY"  # the step from a community to its entity, which is no edge of the graph
NOTED = 5  # entities and communities that the notes list
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


class Found(NamedTuple):
    """A chunk of a level: its place from 0, its row, and the entity or community that led to it, with its cosine."""

    place: int
    row: int
    source: int
    cosine: float


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
    def _place_of(self) -> dict[int, int]:
        return {row: place for place, row in enumerate(self.rows.tolist())}

    def found(self, row: int) -> Found | None:
        """A chunk by its row; None if it is not in the level."""
        place = self._place_of.get(row)
        if place is None:
            return None
        owner = self.owners.item(place)
        return Found(place, row, self.sources.item(owner), self.cosines.item(owner))


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
    own, nearest, count = (
        cosines_of(batch.index.vectors, rows, batch.vectors[q]),
        owners[first][starts],
        counts[first][starts],
    )
    best = np.lexsort((rows, -own, -count, nearest))[:DEPTH]
    return Level(rows[best], nearest[best], sources, cosines, int(counts.sum()))


def _gathered(matrix: sparse.csr_array, rows: Rows) -> tuple[Rows, Rows, Floats]:
    positions, owners = expand_ranges(matrix.indptr[rows], matrix.indptr[rows + 1])
    return matrix.indices[positions].astype(np.int64), owners, matrix.data[positions]


def _entities_by_chunk(graph: Adjacency) -> sparse.csr_array:
    by_chunk = sparse.csr_array(graph.mentions.T)
    by_chunk.sort_indices()
    return by_chunk


class Provenance:
    """What led to ranked chunks, and notes of it."""

    def __init__(self, index: Index, graph: Adjacency, known: Communities | None) -> None:
        self._index, self._graph, self._known = index, graph, known
        self._mentioned = index.memo.get("entities by chunk", lambda: _entities_by_chunk(graph))

    def steps(self, rows: Sequence[int], local: Level, broad: Level) -> list[tuple[Step, ...]]:
        """To each chunk the steps of the level that ranks it higher, the local one on a tie; none if neither has it."""
        near, far = list[Found](), list[Found]()
        for here, there in ((local.found(row), broad.found(row)) for row in rows):
            if here is not None and (there is None or here.place <= there.place):
                near.append(here)
            elif there is not None:
                far.append(there)
        steps: dict[int, tuple[Step, ...]] = {
            found.row: (step,) for found, step in zip(near, self._mentions(near), strict=True)
        }
        if self._known is not None:
            for found, step in zip(far, self._mentions(far, self._known.of_entity), strict=True):
                community, cosine = f"community:{found.source}", found.cosine
                steps[found.row] = Step(IN_COMMUNITY, community, step.source, cosine, cosine), step
        return [steps.get(row, ()) for row in rows]

    def _mentions(self, found: Sequence[Found], community_of: Rows | None = None) -> Iterator[Step]:
        """The step to each chunk from the entity that led to it.

        Of a community, from that of its entities which the chunk mentions with most weight, ties to the smaller id.
        """
        rows, sources = (np.array([getattr(one, name) for one in found], np.int64) for name in ("row", "source"))
        entities, of, weights = _gathered(self._mentioned, rows)
        leading = np.flatnonzero((entities if community_of is None else community_of[entities]) == sources[of])
        leading = leading[np.lexsort((entities[leading], -weights[leading], of[leading]))]
        best = leading[np.diff(of[leading], prepend=-1) > 0]
        names, ids = self._graph.entities, self._index.ids
        for one, entity, weight in zip(found, entities[best].tolist(), weights[best].tolist(), strict=True):
            yield Step(MENTIONED_IN, names[entity], ids[one.row], weight, one.cosine)

    def notes(self, local: Level, broad: Level) -> dict[str, object]:
        """The nearest entities and communities, by name, with their cosines."""
        near = zip(local.sources[:NOTED].tolist(), local.cosines[:NOTED].tolist(), strict=True)
        far = zip(broad.sources[:NOTED].tolist(), broad.cosines[:NOTED].tolist(), strict=True)
        names = self._known.names if self._known else ()
        return {
            "entities": [(self._graph.entities[row], cosine) for row, cosine in near],
            "communities": [(f"community:{one}", ", ".join(names[one][:3]), cosine) for one, cosine in far],
        }


VECTORS_VERSION = "entities-1"  # of what is kept in files
NO_DESCRIPTIONS = Descriptions({}, {}, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A batch with the inputs of both levels: the graph, its names and wording, and each question's keywords."""

    batch: Batch
    counters: Counters
    graph: Adjacency
    reader: Linker
    asked: Sequence[Keywords]
    worded: Descriptions


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
        if self.initial_ranking == "rrf":
            return hybrid_rankings(batch, 0.5, "rrf")
        return batch.vector_rankings

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Both levels for the whole batch, then fused question by question."""
        with stage(counters, "keywords"):
            task = self._task(batch, counters)
        with stage(counters, "local"):
            near = self._local(task) if self.mode != "global" else None
        with stage(counters, "global"):
            far = self._global(task) if self.mode != "local" else None
        with stage(counters, "fusion"):
            initial = self.initial(batch)
            provenance = Provenance(batch.index, task.graph, far[0] if far else None)
            nothing = [Level()] * len(task.asked)
            levels = zip(near or nothing, far[1] if far else nothing, strict=True)
            return [self._fused(batch, q, *pair, initial[q], provenance) for q, pair in enumerate(levels)]

    def _task(self, batch: Batch, counters: Counters) -> _Task:
        reader = linker(batch, counters)
        reads_wording = self.mode != "local" or self.entity_text == "described"
        return _Task(
            batch=batch,
            counters=counters,
            graph=adjacency(batch, counters),
            reader=reader,
            asked=question_keywords(batch, counters, reader),
            worded=descriptions(batch, counters) if reads_wording else NO_DESCRIPTIONS,
        )

    def _local(self, task: _Task) -> list[Level]:
        graph, asked = task.graph, task.asked
        questions, levels = _text_vectors(task.batch, [entity.low for entity in asked]), []
        for q, near in enumerate(self._nearest_entities(task, questions)):
            rows = (graph.entity_row.get(entity) for entity in asked[q].entities)
            named = [row for row in rows if row is not None]
            sources, values = self._passing(near, named if self.use_keywords else [], self.entities)
            level = chunks_of_entities(task.batch, q, graph.mentions, sources, values, self.local_order)
            task.counters.edges_touched += level.touched
            levels.append(level)
        return levels

    def _nearest_entities(self, task: _Task, questions: Vectors) -> Sequence[TopRows]:
        index, what = task.batch.index, f"{self.entity_text} entities"
        known = self._entity_vectors(task)
        return nearest_rows(
            index, what, known, lambda: Queries(spread(index.vectors)), Queries(questions), self.entities
        )

    def _entity_vectors(self, task: _Task) -> Vectors:
        """Embeddings of the graph's entities, (m, d) in the adjacency's order, made once and kept with the graph."""
        described = task.worded.entities if self.entity_text == "described" else {}

        def embedded() -> Arrays:
            name_of = dict(zip(task.reader.entities, task.reader.names, strict=True))  # all are asked for
            named = ((name_of[entity], described.get(entity, "")) for entity in task.graph.entities)
            texts = [f"{name}. {text}" if text else name for name, text in named]
            with stage(task.counters, "entity embedding"):
                return {"vectors": task.batch.index.embed(texts)}

        def read() -> Vectors:
            name = f"vectors-{self.entity_text}-entities"
            return task.batch.index.graph_arrays(name, VECTORS_VERSION, embedded)["vectors"]

        return task.batch.index.memo.get(("entity vectors", self.entity_text), read)

    def _global(self, task: _Task) -> tuple[Communities, list[Level]]:
        with stage(task.counters, "communities"):
            known = communities(
                task.batch,
                task.counters,
                task.graph,
                task.reader,
                task.worded,
                max_size=self.max_community,
                resolution=self.resolution,
                min_strength=self.min_strength,
            )
        questions, levels = _text_vectors(task.batch, [one.high for one in task.asked]), []
        for q, near in enumerate(dense_top(questions, known.vectors, self.communities)):
            best = self._passing(near, [], self.communities)
            level = chunks_of_communities(task.batch, q, known.chunks, *best)
            task.counters.edges_touched += level.touched
            levels.append(level)
        return known, levels

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
        self, batch: Batch, q: int, local: Level, broad: Level, initial: Scored, provenance: Provenance
    ) -> Ranking:
        """Reciprocal rank fusion of the levels that the mode asks for; the initial ranking if they found nothing."""
        question, ids = batch.questions[q].id, batch.index.ids
        notes = provenance.notes(local, broad)
        if not len(local.rows) and not len(broad.rows):
            hits = [Hit(chunk, score, "seed", {self.initial_ranking: score}) for chunk, score in initial]
            notes["fallback"] = f"no entity or community is near the question: the {self.initial_ranking} ranking"
            return Ranking(question, hits, [hit.chunk_id for hit in hits[:10]], notes)
        lists = {"local": local.rows, "global": broad.rows}
        weights = {"local": self.local_weight, "global": self.global_weight, "initial": self.initial_weight}
        if self.mode == "mix":
            lists["initial"] = np.array([batch.index.row_of[chunk] for chunk, _ in initial], np.int64)
        rows, scores, parts = rows_by_reciprocal_rank(lists, weights, KEEP)
        led = (parts["local"] > 0) | (parts["global"] > 0)
        chunks = [ids[row] for row in rows.tolist()]

        def made(places: range) -> list[Hit]:
            steps = provenance.steps(rows[places.start : places.stop].tolist(), local, broad)
            return [
                Hit(
                    chunks[place],
                    scores[place],
                    "graph" if led[place] else "seed",
                    {name: values.item(place) for name, values in parts.items()},
                    path,
                )
                for place, path in zip(places, steps, strict=True)
            ]

        counts = {
            "found": len(local.rows) + len(broad.rows),
            "unique": len(distinct(np.concatenate([local.rows, broad.rows]))),
            "kept": int(led.sum()),
        }
        leading = local.rows if len(local.rows) else broad.rows
        seeds = [ids[row] for row in leading[:10].tolist()]
        return Ranking(question, LazyHits(list(zip(chunks, scores, strict=True)), made), seeds, {**notes, **counts})


def _text_vectors(batch: Batch, texts: Sequence[str]) -> Vectors:
    """Embeddings of keyword texts; the batch has those of the questions themselves."""
    if all(text == question.text for text, question in zip(texts, batch.questions, strict=True)):
        return batch.vectors
    return batch.index.embed(texts)

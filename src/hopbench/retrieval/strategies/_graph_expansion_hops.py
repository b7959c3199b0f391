"""Hops of graph expansion: edges as arrays, the chunks that a hop reaches, and the thresholds of a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import LINKS_TO, MENTIONED_IN, NEXT, PART_OF, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Index
from hopbench.retrieval.support.arrays import expand_ranges
from hopbench.retrieval.support.texts import numbered
from hopbench.retrieval.types import Step

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class EdgeLists(NamedTuple):
    """Edges of one kind in CSR layout: node n has `targets[starts[n] : starts[n + 1]]`, `weights` likewise."""

    starts: Ints
    targets: Ints
    weights: Floats

    @classmethod
    def of_edges(cls, nodes: int, sources: Ints, targets: Ints, weights: Sequence[float]) -> EdgeLists:
        """From edges (e,) by the numbers of their ends; those of a node stay in their order."""
        order = np.argsort(sources, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nodes))])
        return cls(starts, targets[order], np.array(weights, np.float64)[order])

    def above(self, least: float) -> EdgeLists:
        strong = self.weights >= least
        starts = np.concatenate([[0], np.cumsum(strong)])[self.starts]
        return EdgeLists(starts, self.targets[strong], self.weights[strong])

    def of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The edges of some nodes, node by node: the node's index in `nodes`, and the edge's number."""
        edges, owners = expand_ranges(self.starts[nodes], self.starts[nodes + 1])
        return owners, edges


class NodeScratch:
    """Arrays over `size` nodes, reused from question to question, so that none of them allocates for all nodes."""

    def __init__(self, size: int) -> None:
        self._places = np.zeros(size, np.int64)
        self._values = np.zeros(size, np.float64)

    def firsts(self, nodes: Ints) -> Ints:
        places = np.arange(len(nodes))
        self._places[nodes[::-1]] = places[::-1]  # of several values for a node the last one stays
        return np.flatnonzero(self._places[nodes] == places)

    def places(self, nodes: Ints, values: Ints, wanted: Ints) -> Ints:
        self._places[wanted] = -1
        self._places[nodes] = values
        return self._places[wanted]

    def values(self, nodes: Ints, values: Floats, wanted: Ints) -> Floats:
        self._values[wanted] = 0.0
        self._values[nodes] = values
        return self._values[wanted]


@dataclass(slots=True)
class ReachedChunk:
    """A chunk at its depth with the best edges to it; 0 and "" where there is no edge of a kind.

    `similarity` is the last SIMILAR_TO edge's, from chunk `similar_to`, or that of an `edge` of documents; `path` is
    the best entity route's score, through the related entity `entity`, reached from chunk `source` by its entity
    `via`. `carried` is the best product of RELATED_TO strengths over all routes here (1 where a route has none): what
    an entity hop goes on multiplying. That route came by SIMILAR_TO from chunk `carried_from`, or by the entity route
    where that is "".
    """

    depth: int
    similarity: float = 0.0
    similar_to: str = ""
    path: float = 0.0
    source: str = ""
    via: str = ""
    entity: str = ""
    strength: float = 0.0
    mention: float = 0.0
    carried: float = 0.0
    carried_from: str = ""
    carried_similarity: float = 0.0
    edge: str = SIMILAR_TO
    carried_edge: str = SIMILAR_TO


class HopResult(NamedTuple):
    """Chunks that one hop reaches from a frontier (`rows`, ascending), each with the best edges to it.

    `similarities` with the frontier chunk `similar_to` (a place; −1: none), and `carried_by` that of the best carried
    route; `paths` of the best entity route: from the frontier chunk `sources` (−1: none) by its entity `vias` over a
    relation of `strengths` to `entities`, and by the mention edge `mentions`. `looked_up` counts the entities that the
    frontier's chunks mention, once for each chunk, `read` each entity once.
    """

    rows: Ints
    similarities: Floats
    similar_to: Ints
    carried_by: Ints
    carried_similarities: Floats
    paths: Floats
    sources: Ints
    vias: Ints
    entities: Ints
    strengths: Floats
    mentions: Ints
    looked_up: int
    read: int


@dataclass(frozen=True, slots=True)
class HopEdges:
    """One hop's edges of a whole batch. Chunks of the frontier and entities are numbered in the order of their ids.

    `similar` has edges of documents, too, where they are followed: `written` has the type and weight of the heaviest
    from a chunk of the frontier to the row of another.
    """

    chunks: Mapping[str, int]
    entities: Sequence[str]
    similar: EdgeLists
    named: EdgeLists
    related: EdgeLists
    mentions: EdgeLists
    written: Mapping[tuple[int, int], tuple[float, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, records: Sequence[Record], ids: Sequence[str], index: Index) -> HopEdges:
        of_kind = {record["kind"]: record for record in records}
        none: Record = {"source": [], "target": [], "weight": []}
        similar, named, related, mentions = (of_kind.get(kind, none) for kind in "SERM")
        chunks = {chunk: number for number, chunk in enumerate(ids)}
        entities, (named_ends, near, far, mentioned) = numbered(
            [named["target"], related["source"], related["target"], mentions["source"]]
        )

        def of_chunks(edges: Record, targets: Ints) -> EdgeLists:
            sources = np.array([chunks[chunk] for chunk in edges["source"]], np.int64)
            return EdgeLists.of_edges(len(ids), sources, targets, edges["weight"])

        return cls(
            chunks,
            entities,
            of_chunks(similar, index.rows([similar["target"]])),
            of_chunks(named, named_ends),
            EdgeLists.of_edges(len(entities), near, far, related["weight"]),
            EdgeLists.of_edges(len(entities), mentioned, index.rows([mentions["target"]]), mentions["weight"]),
        )

    def above(self, min_similarity: float, min_strength: float) -> HopEdges:
        similar, related = self.similar.above(min_similarity), self.related.above(min_strength)
        return HopEdges(self.chunks, self.entities, similar, self.named, related, self.mentions)

    def with_documents(self, records: Sequence[Record], weights: Mapping[str, float], index: Index) -> HopEdges:
        """Add edges of documents, which weigh `weights` of their type times their own weight."""
        written: dict[tuple[int, int], tuple[float, str]] = {}
        for record in records:
            kind, rows = record["kind"], index.rows([record["target"]]).tolist()
            for source, row, weight in zip(record["source"], rows, record["weight"], strict=True):
                ends, found = (self.chunks[source], row), (weights[kind] * weight, kind)
                if found[0] > 0:
                    written[ends] = max(found, written.get(ends, found))
        sources, targets = np.array(list(written), np.int64).reshape(-1, 2).T
        owners = np.arange(len(self.chunks)).repeat(np.diff(self.similar.starts))
        similar = EdgeLists.of_edges(
            len(self.chunks),
            np.concatenate([owners, sources]),
            np.concatenate([self.similar.targets, targets]),
            [*self.similar.weights.tolist(), *(weight for weight, _ in written.values())],
        )
        return replace(self, similar=similar, written=written)

    def kind(self, chunk: str, row: int, weight: float) -> str:
        """The type of the edge between chunks that has this weight."""
        heaviest, kind = self.written.get((self.chunks[chunk], row), (0.0, SIMILAR_TO))
        return kind if heaviest == weight else SIMILAR_TO

    def edges(self, min_similarity: float, min_strength: float) -> int:
        related = self.related.targets[self.related.weights >= min_strength]
        named = np.zeros(len(self.entities), bool)
        named[related] = True
        mentioned = int(np.diff(self.mentions.starts)[named].sum())
        similar = int((self.similar.weights >= min_similarity).sum())
        return similar + len(self.named.targets) + len(related) + mentioned

    def reach(
        self, frontier: Sequence[str], carried: Floats, product: bool, marks: tuple[NodeScratch, NodeScratch]
    ) -> HopResult:
        """What one question reaches from its frontier, which it may have already; `marks` on chunks and on entities."""
        nodes = np.array([self.chunks[chunk] for chunk in frontier], np.int64)
        (chunk_marks, entity_marks), lone = marks, np.ones(len(nodes))
        counts, routes = self._ways(nodes, carried if product else lone, entity_marks)
        owners, edges = self.mentions.of(routes[0])
        first = chunk_marks.firsts(self.mentions.targets[edges])  # the best route's
        owners, edges = owners[first], edges[first]
        mentioned = self.mentions.targets[edges]
        near, best, going = self._nearest(nodes, carried, chunk_marks)
        every = np.concatenate([mentioned, near])
        every = np.sort(every[chunk_marks.firsts(every)])
        entities, sources, vias = (chunk_marks.places(mentioned, column[owners], every) for column in routes[:3])
        strengths, paths = (chunk_marks.values(mentioned, column[owners], every) for column in routes[3:])
        return HopResult(
            every,
            chunk_marks.values(near, best[1], every),
            chunk_marks.places(near, best[0], every),
            chunk_marks.places(near, going[0], every),
            chunk_marks.values(near, going[1], every),
            paths,
            sources,
            vias,
            entities,
            strengths,
            chunk_marks.places(mentioned, edges, every),
            *counts,
        )

    def _nearest(
        self, nodes: Ints, carried: Floats, marks: NodeScratch
    ) -> tuple[Ints, tuple[Ints, Floats], tuple[Ints, Floats]]:
        """Similar chunks, and the frontier chunk (a place) and similarity of the nearest, and of the best carried."""
        sources, edges = self.similar.of(nodes)
        near, similarities = self.similar.targets[edges], self.similar.weights[edges]
        order = np.argsort(-similarities, kind="stable")  # equal ones by source, as they come
        best = order[marks.firsts(near[order])]
        best = best[np.argsort(near[best])]
        order = order[np.argsort(-carried[sources[order]], kind="stable")]
        going = order[marks.firsts(near[order])]
        going = going[np.argsort(near[going])]
        return near[best], (sources[best], similarities[best]), (sources[going], similarities[going])

    def _ways(
        self, nodes: Ints, carried: Floats, marks: NodeScratch
    ) -> tuple[tuple[int, int], tuple[Ints, Ints, Ints, Floats, Floats]]:
        """Entities looked up and read, and the best route to each related one; ties go to the smaller ids.

        Of each route the entity, the index of its frontier chunk, the entity via which it goes, its strength and path.
        """
        sources, edges = self.named.of(nodes)
        vias, looked_up = self.named.targets[edges], len(edges)
        order = np.argsort(-carried[sources], kind="stable")
        best = order[marks.firsts(vias[order])]
        best = best[np.lexsort((vias[best], sources[best]))]
        sources, vias = sources[best], vias[best]
        owners, edges = self.related.of(vias)
        entities, strengths = self.related.targets[edges], self.related.weights[edges]
        paths = strengths * carried[sources[owners]]
        order = np.argsort(-paths, kind="stable")
        first = order[marks.firsts(entities[order])]
        first = first[np.lexsort((entities[first], -paths[first]))]
        own = owners[first]
        return (looked_up, len(best)), (entities[first], sources[own], vias[own], strengths[first], paths[first])


def steps_to(
    chunk: str, here: ReachedChunk, reached: Callable[[str], ReachedChunk], *, going_on: bool = False
) -> tuple[Step, ...]:
    """The edges from a seed to a chunk: the route of its graph score, or the one that later hops continue."""
    if not here.depth:
        return ()
    similar = here.carried_from if going_on else here.similar_to if here.similarity >= here.path else ""
    source = reached(similar or here.source)
    if similar:
        weight = here.carried_similarity if going_on else here.similarity
        edge = here.carried_edge if going_on else here.edge
        return *steps_to(similar, source, reached, going_on=going_on), Step(edge, similar, chunk, weight, weight)
    return (
        *steps_to(here.source, source, reached, going_on=True),
        Step(MENTIONED_IN, here.source, here.via, 1.0, source.carried),
        Step(RELATED_TO, here.via, here.entity, here.strength, here.path),
        Step(MENTIONED_IN, here.entity, chunk, here.mention, here.path),
    )


NEVER = 2.0  # above every similarity and strength: a threshold that no edge passes
SEED_CHUNK = ReachedChunk(0, carried=1.0)


@dataclass(frozen=True, kw_only=True)
class ExpansionLimits:
    """How far an expansion goes, and over which edges; `enough` chunks beside the seeds end it.

    Edges of documents are followed by their weights, `links` and `sections`, if these are above 0.
    """

    depth: int
    min_similarity: float
    min_strength: float
    path_strength: str
    enough: int
    links: float = 0.0
    sections: float = 0.0

    @property
    def documents(self) -> Mapping[str, float]:
        """The weights of edges of documents by type; none where none is followed."""
        weights = {LINKS_TO: self.links, NEXT: self.sections, PART_OF: self.sections}
        return weights if any(weights.values()) else {}


@dataclass(slots=True)
class QuestionHop:
    """One question's hop from its `frontier` (chunk ids in order); `carried` is the best product of strengths to each.

    `described` caches the provenance of reached chunks for all trials that share the hop: by the chunk's index in the
    result, and by which of its edges pass the trial's thresholds.
    """

    hop: HopEdges
    depth: int
    frontier: Sequence[str]
    carried: Floats
    result: HopResult
    described: dict[tuple[int, bool, bool], tuple[ReachedChunk, tuple[Step, ...]]] = field(default_factory=dict)

    def reached(self, place: int, near: bool, led: bool) -> ReachedChunk:
        """The chunk at an index of the result; `near` and `led` say whether its similarity and entity route count."""
        result, here = self.result, ReachedChunk(self.depth)
        if near:
            going = result.carried_by.item(place)
            here.similarity = result.similarities.item(place)
            here.similar_to = self.frontier[result.similar_to.item(place)]
            here.carried, here.carried_from = self.carried.item(going), self.frontier[going]
            here.carried_similarity = result.carried_similarities.item(place)
            row = result.rows.item(place)
            here.edge = self.hop.kind(here.similar_to, row, here.similarity)
            here.carried_edge = self.hop.kind(here.carried_from, row, here.carried_similarity)
        if led:
            here.path, here.strength = result.paths.item(place), result.strengths.item(place)
            here.entity = self.hop.entities[result.entities.item(place)]
            here.via = self.hop.entities[result.vias.item(place)]
            here.source = self.frontier[result.sources.item(place)]
            here.mention = self.hop.mentions.weights.item(result.mentions.item(place))
            if here.path > here.carried:
                here.carried, here.carried_from = here.path, ""
        return here


@dataclass(slots=True)
class FilteredHop:
    """A hop under a trial's thresholds: for each chunk whether its SIMILAR_TO edge and its entity route pass them."""

    hop: QuestionHop
    by_similarity: NDArray[np.bool_]
    by_entities: NDArray[np.bool_]

    @classmethod
    def of(cls, hop: QuestionHop, limits: ExpansionLimits) -> FilteredHop:
        result = hop.result
        least = 0.0 if limits.documents else limits.min_similarity  # the hop has only similar chunks that pass
        near = (result.similar_to >= 0) & (result.similarities >= least)
        led = (result.sources >= 0) & (result.strengths >= limits.min_strength)
        return cls(hop, near, led)

    def new(self, known: Ints) -> Ints:
        """Indices, in the result, of chunks that pass and are not among the `known` rows."""
        rows, fresh = self.hop.result.rows, self.by_similarity | self.by_entities
        at = np.searchsorted(rows, known)
        inside = at < len(rows)
        at, known = at[inside], known[inside]
        fresh[at[rows[at] == known]] = False
        return np.flatnonzero(fresh)

    def strengths(self, places: Ints) -> Floats:
        return self._larger(self.hop.result.similarities, self.hop.result.paths, places)

    def carried(self, places: Ints) -> Floats:
        return self._larger(self.hop.carried[self.hop.result.carried_by], self.hop.result.paths, places)

    def _larger(self, near: Floats, led: Floats, places: Ints) -> Floats:
        near = np.where(self.by_similarity[places], near[places], 0.0)
        return np.asarray(np.maximum(near, np.where(self.by_entities[places], led[places], 0.0)))

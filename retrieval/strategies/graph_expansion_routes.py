"""The routes of document 1's expansion: what one hop's rows reach, and the edges that led there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from retrieval.graph.store import Record
from retrieval.types import Step

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(slots=True)
class Reached:
    """A chunk at its depth with the best that led to it; 0 and "" where nothing of that kind did.

    `similarity` is the last SIMILAR_TO edge's, from chunk `similar_to`; `path` the best entity route's score, through
    the related entity `entity`, reached from chunk `source` by its entity `via`. `carried` is the best product of
    RELATED_TO strengths over all routes here (1 where a route has none): what an entity hop goes on multiplying. That
    route came by SIMILAR_TO from chunk `carried_from`, or by the entity route where that is "".
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


class Edges(NamedTuple):
    """Edges of one kind by the number of the node they start from: node n has `targets[starts[n] : starts[n + 1]]`."""

    starts: Ints
    targets: Ints
    weights: Floats

    @classmethod
    def make(cls, records: Sequence[Record | None], number_of: Mapping[str, int]) -> Edges:
        """From a record per node (None: it has no such edges); `number_of` numbers the targets."""
        sizes = [0 if record is None else len(record["target"]) for record in records]
        known = [record for record in records if record is not None]
        targets = [number_of[target] for record in known for target in record["target"]]
        weights = [weight for record in known for weight in record["weight"]]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        return cls(starts, np.array(targets, np.int64), np.array(weights, np.float64))

    def above(self, least: float) -> Edges:
        """Those with at least this weight."""
        kept = self.weights >= least
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return Edges(starts, self.targets[kept], self.weights[kept])

    def of(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """The edges of some nodes, node by node: the node's place among `nodes`, the target, the weight."""
        begins = self.starts[nodes]
        sizes = self.starts[nodes + 1] - begins
        owners = np.repeat(np.arange(len(nodes)), sizes)
        places = np.arange(len(owners)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
        return owners, self.targets[places], self.weights[places]


class Ways(NamedTuple):
    """A question's best way to each related entity, best first: from a frontier chunk (its place) by its entity."""

    paths: Floats
    entities: Ints
    sources: Ints
    vias: Ints
    strengths: Floats


class Found(NamedTuple):
    """Chunks that one hop newly reaches from the frontier (`rows`, ascending), each with the best that led to it.

    `similarities` with the frontier chunk `similar_to` (a place; −1: none) and, of the best carried route, `carried`;
    `ways` is the place of the best entity way (−1: none), `mentions` the weight of its last edge.
    """

    rows: Ints
    similarities: Floats
    similar_to: Ints
    carried_by: Ints
    carried_similarities: Floats
    ways: Ints
    mentions: Floats


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop's edges of a whole batch. Chunks of the frontier and entities are numbered in the order of their ids."""

    chunks: Mapping[str, int]
    entities: Sequence[str]
    similar: Edges
    named: Edges
    related: Edges
    mentions: Edges

    @classmethod
    def read(cls, records: Sequence[Record], ids: Sequence[str], row_of: Mapping[str, int]) -> Hop:
        """From the records of `cypher.EXPANSION_HOP` for these chunks."""
        kinds: dict[str, dict[str, Record]] = {kind: {} for kind in "SERM"}
        for record in records:
            kinds[record["kind"]][record["id"]] = record
        ends = [target for kind in "ER" for record in kinds[kind].values() for target in record["target"]]
        entities = sorted(set(ends))
        number_of = {entity: number for number, entity in enumerate(entities)}
        return cls(
            {chunk: number for number, chunk in enumerate(ids)},
            entities,
            Edges.make([kinds["S"].get(chunk) for chunk in ids], row_of),
            Edges.make([kinds["E"].get(chunk) for chunk in ids], number_of),
            Edges.make([kinds["R"].get(entity) for entity in entities], number_of),
            Edges.make([kinds["M"].get(entity) for entity in entities], row_of),
        )

    def above(self, min_similarity: float, min_strength: float) -> tuple[Hop, int]:
        """What the hop would have been, read with these thresholds, and how many edges it would have read."""
        similar, related = self.similar.above(min_similarity), self.related.above(min_strength)
        sizes = np.diff(self.mentions.starts)[np.unique(related.targets)]
        edges = len(similar.targets) + len(self.named.targets) + len(related.targets) + int(sizes.sum())
        return Hop(self.chunks, self.entities, similar, self.named, related, self.mentions), edges

    def reach(
        self, frontier: Sequence[str], carried: Floats, known: NDArray[np.bool_], product: bool
    ) -> tuple[Found, Ways]:
        """What one question newly reaches from its frontier, in the order of ids; `known` marks what it has."""
        nodes = np.array([self.chunks[chunk] for chunk in frontier], np.int64)
        ways = self._ways(nodes, carried if product else np.ones(len(nodes)))
        places, rows, weights = self.mentions.of(ways.entities)
        rows, firsts = np.unique(rows, return_index=True)  # the first is the best way's
        places, weights = places[firsts], weights[firsts]
        sources, near, similarities = self.similar.of(nodes)
        best = _firsts(near, (-similarities, sources))
        going = _firsts(near, (-carried[sources], -similarities, sources))
        every = np.union1d(rows, near[best])
        every = every[~known[every]]
        here, there = _places(near[best], every), _places(rows, every)
        found = Found(
            every,
            np.where(here >= 0, similarities[best][here], 0.0) if len(best) else np.zeros(len(every)),
            np.where(here >= 0, sources[best][here], -1) if len(best) else np.full(len(every), -1),
            np.where(here >= 0, sources[going][here], -1) if len(best) else np.full(len(every), -1),
            np.where(here >= 0, similarities[going][here], 0.0) if len(best) else np.zeros(len(every)),
            np.where(there >= 0, places[there], -1) if len(rows) else np.full(len(every), -1),
            np.where(there >= 0, weights[there], 0.0) if len(rows) else np.zeros(len(every)),
        )
        return found, ways

    def _ways(self, nodes: Ints, carried: Floats) -> Ways:
        """The best way to each related entity; equal ones go to the smaller ids."""
        sources, vias, _ = self.named.of(nodes)
        best = _firsts(vias, (-carried[sources], sources))
        sources, vias = sources[best], vias[best]
        places, entities, strengths = self.related.of(vias)
        paths = strengths * carried[sources[places]]
        first = _firsts(entities, (-paths, sources[places], vias[places]))
        first = first[np.lexsort((entities[first], -paths[first]))]
        own = places[first]
        return Ways(paths[first], entities[first], sources[own], vias[own], strengths[first])


def _firsts(groups: Ints, keys: Sequence[NDArray[np.generic]]) -> Ints:
    """The place of the first of each group by the keys, most important key first; groups ascend."""
    order = np.lexsort((*reversed(keys), groups))
    ordered = groups[order]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(order[first])


def _places(some: Ints, every: Ints) -> Ints:
    """Where each of `every` stands in `some` (ascending); −1 where it does not."""
    places = np.searchsorted(some, every)
    inside = places < len(some)
    inside[inside] = some[places[inside]] == every[inside]
    return np.where(inside, places, -1)


def steps_to(chunk: str, reached: Mapping[str, Reached], *, going_on: bool = False) -> tuple[Step, ...]:
    """The edges from a seed to a chunk: the route that made its graph score, or the one from which hops go on."""
    here = reached[chunk]
    if not here.depth:
        return ()
    similar = here.carried_from if going_on else here.similar_to if here.similarity >= here.path else ""
    if similar:
        weight = here.carried_similarity if going_on else here.similarity
        return *steps_to(similar, reached, going_on=going_on), Step(SIMILAR_TO, similar, chunk, weight, weight)
    return (
        *steps_to(here.source, reached, going_on=True),
        Step(MENTIONED_IN, here.source, here.via, 1.0, reached[here.source].carried),
        Step(RELATED_TO, here.via, here.entity, here.strength, here.path),
        Step(MENTIONED_IN, here.entity, chunk, here.mention, here.path),
    )

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

Edges = Sequence[tuple[str, float]]


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


class Way(NamedTuple):
    """The best way of a question to a related entity, in the order of preference.

    `lost` is −path score; the way goes from the frontier chunk `source` by its entity `via`.
    """

    lost: float
    entity: str
    source: str
    via: str
    strength: float


class Mentions(NamedTuple):
    """The chunks that mention an entity, as index rows, with the weights of the edges."""

    rows: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop's edges of a whole batch by kind and the node they start from; `edges` is how many."""

    similar: Mapping[str, Edges]
    named: Mapping[str, Sequence[str]]
    related: Mapping[str, Edges]
    mentions: Mapping[str, Mentions]
    edges: int

    @classmethod
    def read(cls, records: Sequence[Record], row_of: Mapping[str, int]) -> Hop:
        """From the records of `cypher.EXPANSION_HOP`."""
        kinds: dict[str, dict[str, Record]] = {kind: {} for kind in "SERM"}
        for record in records:
            kinds[record["kind"]][record["id"]] = record
        mentions = {
            entity: Mentions(
                np.fromiter((row_of[chunk] for chunk in one["target"]), np.int64, len(one["target"])),
                np.asarray(one["weight"], np.float64),
            )
            for entity, one in kinds["M"].items()
        }
        named = {chunk: list(one["target"]) for chunk, one in kinds["E"].items()}
        edges = sum(len(record["target"]) for record in records)
        return cls(_edges(kinds["S"]), named, _edges(kinds["R"]), mentions, edges)

    def above(self, min_similarity: float, min_strength: float) -> Hop:
        """What the hop would have been, read with these thresholds."""
        similar, related = _above(self.similar, min_similarity), _above(self.related, min_strength)
        entities = dict.fromkeys(target for edges in related.values() for target, _ in edges)
        mentions = {entity: self.mentions[entity] for entity in entities if entity in self.mentions}
        counts = map(len, (*similar.values(), *self.named.values(), *related.values()))
        edges = sum(counts) + sum(len(one.rows) for one in mentions.values())
        return Hop(similar, self.named, related, mentions, edges)

    def reach(
        self, frontier: Sequence[str], before: Mapping[str, Reached], depth: int, path_strength: str
    ) -> tuple[dict[str, Reached], list[Way]]:
        """One question's new chunks by SIMILAR_TO, and its ways to related entities, best first."""
        found: dict[str, Reached] = {}
        for source in frontier:
            for target, similarity in self.similar.get(source, ()):
                if target not in before:
                    _by_similar(found.setdefault(target, Reached(depth)), similarity, source, before[source].carried)
        return found, self._ways(frontier, before, path_strength)

    def _ways(self, frontier: Sequence[str], before: Mapping[str, Reached], path_strength: str) -> list[Way]:
        """The best way to each related entity; equal ones go to the smaller ids."""
        ways: dict[str, Way] = {}
        for source in frontier:
            carried = before[source].carried if path_strength == "product" else 1.0
            for via in self.named.get(source, ()):
                for related, strength in self.related.get(via, ()):
                    lost = -strength * carried
                    known = ways.get(related)
                    if known is None or (lost, source, via) < (known.lost, known.source, known.via):
                        ways[related] = Way(lost, related, source, via, strength)
        return sorted(way for way in ways.values() if way.entity in self.mentions)

    def mentioned(self, ways: Sequence[Way]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The chunks that the ways lead to: rows (ascending), place of the best way to each, its mention's weight."""
        if not ways:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        mentions = [self.mentions[way.entity] for way in ways]
        rows, firsts = np.unique(np.concatenate([one.rows for one in mentions]), return_index=True)
        owners = np.repeat(np.arange(len(ways)), [len(one.rows) for one in mentions])
        return rows, owners[firsts], np.concatenate([one.weights for one in mentions])[firsts]


def _edges(records: Mapping[str, Record]) -> dict[str, Edges]:
    return {node: list(zip(one["target"], one["weight"], strict=True)) for node, one in records.items()}


def _above(edges: Mapping[str, Edges], least: float) -> dict[str, Edges]:
    return {node: [edge for edge in some if edge[1] >= least] for node, some in edges.items()}


def _by_similar(here: Reached, similarity: float, source: str, carried: float) -> None:
    way = (-carried, -similarity, source)
    if not here.carried_from or way < (-here.carried, -here.carried_similarity, here.carried_from):
        here.carried, here.carried_similarity, here.carried_from = carried, similarity, source
    if not here.similar_to or (-similarity, source) < (-here.similarity, here.similar_to):
        here.similarity, here.similar_to = similarity, source


def by_entity(here: Reached, way: Way, mention: float) -> Reached:
    """The chunk, reached by its best entity way as well."""
    here.path, here.entity, here.mention = -way.lost, way.entity, mention
    here.source, here.via, here.strength = way.source, way.via, way.strength
    if here.path > here.carried:
        here.carried, here.carried_from = here.path, ""
    return here


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

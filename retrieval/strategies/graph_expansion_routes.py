"""The routes of document 1's expansion: what one hop's rows reach, and the edges that led there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop's raw rows of a whole batch: edges (target, weight) by kind and the node they start from."""

    similar: Mapping[str, Edges]
    named: Mapping[str, Edges]
    related: Mapping[str, Edges]
    mentions: Mapping[str, Edges]

    @classmethod
    def read(cls, records: Sequence[Record]) -> Hop:
        """From the records of `cypher.EXPANSION_HOP`."""
        kinds: dict[str, dict[str, Edges]] = {kind: {} for kind in "SERM"}
        for record in records:
            kinds[record["kind"]][record["id"]] = list(zip(record["target"], record["weight"], strict=True))
        return cls(*kinds.values())

    def reach(
        self, frontier: Sequence[str], before: Mapping[str, Reached], depth: int, path_strength: str
    ) -> dict[str, Reached]:
        """The chunks that one question newly reaches from its frontier; equal routes go to the smaller ids."""
        found: dict[str, Reached] = {}
        for source in frontier:
            for target, similarity in self.similar.get(source, ()):
                if target not in before:
                    _by_similar(found.setdefault(target, Reached(depth)), similarity, source, before[source].carried)
        for entity, way in self._ways(frontier, before, path_strength).items():
            for target, weight in self.mentions.get(entity, ()):
                if target not in before:
                    _by_entity(found.get(target) or found.setdefault(target, Reached(depth)), entity, weight, way)
        return found

    def _ways(
        self, frontier: Sequence[str], before: Mapping[str, Reached], path_strength: str
    ) -> dict[str, tuple[float, str, str, float]]:
        """The best way to each related entity: (−path score, source chunk, its entity, the edge's strength)."""
        ways: dict[str, tuple[float, str, str, float]] = {}
        for source in frontier:
            carried = before[source].carried if path_strength == "product" else 1.0
            for via, _ in self.named.get(source, ()):
                for related, strength in self.related.get(via, ()):
                    way = (-strength * carried, source, via, strength)
                    if related not in ways or way < ways[related]:
                        ways[related] = way
        return ways


def _by_similar(here: Reached, similarity: float, source: str, carried: float) -> None:
    way = (-carried, -similarity, source)
    if not here.carried_from or way < (-here.carried, -here.carried_similarity, here.carried_from):
        here.carried, here.carried_similarity, here.carried_from = carried, similarity, source
    if not here.similar_to or (-similarity, source) < (-here.similarity, here.similar_to):
        here.similarity, here.similar_to = similarity, source


def _by_entity(here: Reached, entity: str, mention: float, way: tuple[float, str, str, float]) -> None:
    lost, source, via, strength = way
    if not here.entity or (lost, entity) < (-here.path, here.entity):
        here.path, here.entity, here.mention = -lost, entity, mention
        here.source, here.via, here.strength = source, via, strength
        if -lost > here.carried:
            here.carried, here.carried_from = -lost, ""


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

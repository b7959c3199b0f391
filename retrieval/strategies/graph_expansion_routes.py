"""The routes of document 1's expansion: what one hop's rows reach, and the edges that led there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from retrieval.graph.store import Record
from retrieval.types import Step


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


def hop(
    records: Sequence[Record], reached: Sequence[Mapping[str, Reached]], depth: int, path_strength: str
) -> dict[int, dict[str, Reached]]:
    """Join one hop's raw rows into the chunks newly reached, per question; equal routes go to the smaller ids."""
    parts: dict[int, dict[str, Record]] = {}
    for record in records:
        parts.setdefault(record["q"], {})[record["kind"]] = record
    return {q: _reached(kinds, reached[q], depth, path_strength) for q, kinds in parts.items()}


def _reached(
    kinds: Mapping[str, Record], before: Mapping[str, Reached], depth: int, path_strength: str
) -> dict[str, Reached]:
    found: dict[str, Reached] = {}
    for source, _, target, similarity in _edges(kinds, "S"):
        here = found.setdefault(target, Reached(depth))
        way = (-before[source].carried, -similarity, source)
        if not here.carried_from or way < (-here.carried, -here.carried_similarity, here.carried_from):
            here.carried, here.carried_similarity, here.carried_from = -way[0], similarity, source
        if not here.similar_to or (-similarity, source) < (-here.similarity, here.similar_to):
            here.similarity, here.similar_to = similarity, source
    ways = _entity_ways(_edges(kinds, "R"), before, path_strength)
    for entity, _, target, weight in _edges(kinds, "M"):
        lost, source, via, strength = ways[entity]
        here = found.get(target) or found.setdefault(target, Reached(depth))
        if not here.entity or (lost, entity) < (-here.path, here.entity):
            here.path, here.entity, here.mention = -lost, entity, weight
            here.source, here.via, here.strength = source, via, strength
            if -lost > here.carried:
                here.carried, here.carried_from = -lost, ""
    return found


def _edges(kinds: Mapping[str, Record], kind: str) -> Iterator[tuple[str, str, str, float]]:
    record = kinds.get(kind)
    if record is not None:
        yield from zip(record["source"], record["via"], record["target"], record["weight"], strict=True)


def _entity_ways(
    edges: Iterable[tuple[str, str, str, float]], before: Mapping[str, Reached], path_strength: str
) -> dict[str, tuple[float, str, str, float]]:
    """The best way to each related entity: (−path score, source chunk, its entity, the edge's strength)."""
    ways: dict[str, tuple[float, str, str, float]] = {}
    for source, via, related, strength in edges:
        path = strength * before[source].carried if path_strength == "product" else strength
        way = (-path, source, via, strength)
        if related not in ways or way < ways[related]:
            ways[related] = way
    return ways


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

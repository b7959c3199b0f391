"""KG²RAG's graph-guided expansion: from seed chunks over triples to other chunks, and the path to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.kg2rag.trees import Floats, Rows, Triples
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Step


class EntityWay(NamedTuple):
    """How the traversal came to an entity: a triple's far end from `via`, or, with via −1, a seed's chunk row."""

    via: int
    source: int
    value: float


class ChunkWay(NamedTuple):
    """How a chunk was reached: its hop, the entity it was reached from, its triple, and the path's value."""

    hop: int
    entity: int
    triple: int
    value: float


@dataclass(slots=True)
class Expansion:
    """A question's chunks with their weights; the expanded ones, and the entities, with how they were reached."""

    weights: dict[int, float]
    chunks: dict[int, ChunkWay] = field(default_factory=dict)
    entities: dict[int, EntityWay] = field(default_factory=dict)
    touched: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The expansion's parameters, as KG2RAG documents them."""

    hops: int
    max_fan: int
    max_chunks: int
    inherit: float


def expand(batch: Batch, q: int, seeds: Sequence[int], graph: Adjacency, triples: Triples, limits: Limits) -> Expansion:
    """The seeds and what `hops` steps over triples add to them."""
    rows = np.array(seeds, dtype=np.int64)
    similarities = cosines(batch.index.vectors, rows, batch.vectors[q])
    best_first = np.lexsort((rows, -similarities))
    found = Expansion(dict(zip(seeds, similarities.tolist(), strict=True)))
    numbers = triples.stated_in(rows[best_first])
    found.touched += len(numbers)
    ends = np.stack([triples.heads[numbers], triples.tails[numbers]], axis=1).ravel()
    frontier, first = np.unique(ends, return_index=True)
    for entity, seed in zip(frontier.tolist(), triples.chunks[numbers[first // 2]].tolist(), strict=True):
        found.entities[entity] = EntityWay(-1, seed, found.weights[seed])
    for hop in range(1, limits.hops + 1):
        frontier = _hop(batch, q, frontier[graph.frequency[frontier] <= limits.max_fan], triples, limits, hop, found)
    return found


def _hop(batch: Batch, q: int, frontier: Rows, triples: Triples, limits: Limits, hop: int, found: Expansion) -> Rows:
    """Add the heaviest chunks that state a triple of the frontier; returns the entities newly reached by them."""
    numbers, near = triples.about(frontier)
    found.touched += len(numbers)
    new = ~np.isin(triples.chunks[numbers], list(found.weights))
    numbers, near = numbers[new], near[new]
    value = np.array([found.entities[entity].value for entity in frontier.tolist()])
    values = np.round(triples.strengths[numbers] * value[np.searchsorted(frontier, near)], DECIMALS)
    best_first = np.lexsort((near, numbers, -values))
    rows, first = np.unique(triples.chunks[numbers[best_first]], return_index=True)
    ways = best_first[first]
    weights = cosines(batch.index.vectors, rows, batch.vectors[q])
    weights = np.round((1.0 - limits.inherit) * weights + limits.inherit * values[ways], DECIMALS)
    heaviest = np.lexsort((rows, -weights))[: limits.max_chunks]
    found.weights.update(zip(rows[heaviest].tolist(), weights[heaviest].tolist(), strict=True))
    taken = zip(rows[heaviest].tolist(), ways[heaviest].tolist(), strict=True)
    found.chunks.update(
        (row, ChunkWay(hop, int(near[way]), int(numbers[way]), float(values[way]))) for row, way in taken
    )
    if hop == limits.hops:
        return np.zeros(0, np.int64)
    return _far_ends(
        triples,
        best_first[np.isin(triples.chunks[numbers[best_first]], rows[heaviest])],
        numbers,
        near,
        values,
        found,
    )


def _far_ends(triples: Triples, kept: Rows, numbers: Rows, near: Rows, values: Floats, found: Expansion) -> Rows:
    """The entities at the other ends of the kept triples (best first) that were not reached before, ascending."""
    far = triples.heads[numbers[kept]] + triples.tails[numbers[kept]] - near[kept]
    entities, first = np.unique(far, return_index=True)
    new = {
        entity: EntityWay(int(near[way]), int(numbers[way]), float(values[way]))
        for entity, way in zip(entities.tolist(), kept[first].tolist(), strict=True)
        if entity not in found.entities
    }
    found.entities.update(new)
    return np.array(list(new), dtype=np.int64)


def path_to(row: int, found: Expansion, graph: Adjacency, triples: Triples, index: Index) -> tuple[Step, ...]:
    """The edges from a seed to an expanded chunk: mention, relations, mention; none for a seed."""
    way = found.chunks.get(row)
    if way is None:
        return ()
    steps, entity = _entity_path(way.entity, found, graph, triples, index), way.entity
    far = int(triples.heads[way.triple] + triples.tails[way.triple]) - entity
    names, strength = graph.entities, float(triples.strengths[way.triple])
    mention = graph.mention_weight(far, row)
    return (
        *steps,
        Step(RELATED_TO, names[entity], names[far], strength, way.value),
        Step(MENTIONED_IN, names[far], index.chunks[row].id, mention, found.weights[row]),
    )


def _entity_path(entity: int, found: Expansion, graph: Adjacency, triples: Triples, index: Index) -> tuple[Step, ...]:
    way = found.entities[entity]
    if way.via < 0:
        mention = graph.mention_weight(entity, way.source)
        return (Step(MENTIONED_IN, index.chunks[way.source].id, graph.entities[entity], mention, way.value),)
    before = _entity_path(way.via, found, graph, triples, index)
    strength = float(triples.strengths[way.source])
    return (*before, Step(RELATED_TO, graph.entities[way.via], graph.entities[entity], strength, way.value))

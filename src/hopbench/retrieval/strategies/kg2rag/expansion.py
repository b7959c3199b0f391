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


class EntityOrigin(NamedTuple):
    """How the traversal reached an entity: from entity `via` by triple `source`, or (via −1) in seed chunk `source`."""

    via: int
    source: int
    value: float


class ChunkOrigin(NamedTuple):
    """How a chunk was reached: its hop, the entity it was reached from, its triple, and the path's value."""

    hop: int
    entity: int
    triple: int
    value: float


@dataclass(slots=True)
class Expansion:
    """A question's chunks with their weights, and the origins of expanded chunks and of entities."""

    weights: dict[int, float]
    chunks: dict[int, ChunkOrigin] = field(default_factory=dict)
    entities: dict[int, EntityOrigin] = field(default_factory=dict)
    touched: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The expansion's parameters, as KG2RAG documents them."""

    hops: int
    max_fan: int
    max_chunks: int
    inherit: float


def expand(batch: Batch, q: int, seeds: Sequence[int], graph: Adjacency, triples: Triples, limits: Limits) -> Expansion:
    """The seeds with the chunks that `hops` steps over triples add."""
    rows = np.array(seeds, dtype=np.int64)
    similarities = cosines(batch.index.vectors, rows, batch.vectors[q])
    best_first = np.lexsort((rows, -similarities))
    expansion = Expansion(dict(zip(seeds, similarities.tolist(), strict=True)))
    numbers = triples.stated_in(rows[best_first])
    expansion.touched += len(numbers)
    ends = np.stack([triples.heads[numbers], triples.tails[numbers]], axis=1).ravel()
    frontier, first = np.unique(ends, return_index=True)
    for entity, seed in zip(frontier.tolist(), triples.chunks[numbers[first // 2]].tolist(), strict=True):
        expansion.entities[entity] = EntityOrigin(-1, seed, expansion.weights[seed])
    for hop in range(1, limits.hops + 1):
        frontier = _hop(
            batch, q, frontier[graph.frequency[frontier] <= limits.max_fan], triples, limits, hop, expansion
        )
    return expansion


def _hop(
    batch: Batch, q: int, frontier: Rows, triples: Triples, limits: Limits, hop: int, expansion: Expansion
) -> Rows:
    """Add the heaviest chunks that state a triple of the frontier; returns the entities newly reached by them."""
    numbers, near = triples.about(frontier)
    expansion.touched += len(numbers)
    new = ~np.isin(triples.chunks[numbers], list(expansion.weights))
    numbers, near = numbers[new], near[new]
    value = np.array([expansion.entities[entity].value for entity in frontier.tolist()])
    values = np.round(triples.strengths[numbers] * value[np.searchsorted(frontier, near)], DECIMALS)
    best_first = np.lexsort((near, numbers, -values))
    rows, first = np.unique(triples.chunks[numbers[best_first]], return_index=True)
    origins = best_first[first]
    weights = cosines(batch.index.vectors, rows, batch.vectors[q])
    weights = np.round((1.0 - limits.inherit) * weights + limits.inherit * values[origins], DECIMALS)
    heaviest = np.lexsort((rows, -weights))[: limits.max_chunks]
    expansion.weights.update(zip(rows[heaviest].tolist(), weights[heaviest].tolist(), strict=True))
    taken = zip(rows[heaviest].tolist(), origins[heaviest].tolist(), strict=True)
    expansion.chunks.update(
        (row, ChunkOrigin(hop, int(near[origin]), int(numbers[origin]), float(values[origin]))) for row, origin in taken
    )
    if hop == limits.hops:
        return np.zeros(0, np.int64)
    return _far_ends(
        triples,
        best_first[np.isin(triples.chunks[numbers[best_first]], rows[heaviest])],
        numbers,
        near,
        values,
        expansion,
    )


def _far_ends(
    triples: Triples, followed: Rows, numbers: Rows, near: Rows, values: Floats, expansion: Expansion
) -> Rows:
    """The entities, not reached before, at the far ends of the followed triples (best first), ascending."""
    far = triples.heads[numbers[followed]] + triples.tails[numbers[followed]] - near[followed]
    entities, first = np.unique(far, return_index=True)
    new = {
        entity: EntityOrigin(int(near[origin]), int(numbers[origin]), float(values[origin]))
        for entity, origin in zip(entities.tolist(), followed[first].tolist(), strict=True)
        if entity not in expansion.entities
    }
    expansion.entities.update(new)
    return np.array(list(new), dtype=np.int64)


def path_to(row: int, expansion: Expansion, graph: Adjacency, triples: Triples, index: Index) -> tuple[Step, ...]:
    """The edges from a seed to an expanded chunk: mention, relations, mention; none for a seed."""
    origin = expansion.chunks.get(row)
    if origin is None:
        return ()
    steps, entity = _entity_path(origin.entity, expansion, graph, triples, index), origin.entity
    far = int(triples.heads[origin.triple] + triples.tails[origin.triple]) - entity
    names, strength = graph.entities, float(triples.strengths[origin.triple])
    mention = graph.mention_weight(far, row)
    return (
        *steps,
        Step(RELATED_TO, names[entity], names[far], strength, origin.value),
        Step(MENTIONED_IN, names[far], index.ids[row], mention, expansion.weights[row]),
    )


def _entity_path(
    entity: int, expansion: Expansion, graph: Adjacency, triples: Triples, index: Index
) -> tuple[Step, ...]:
    origin = expansion.entities[entity]
    if origin.via < 0:
        mention = graph.mention_weight(entity, origin.source)
        return (Step(MENTIONED_IN, index.ids[origin.source], graph.entities[entity], mention, origin.value),)
    before = _entity_path(origin.via, expansion, graph, triples, index)
    strength = float(triples.strengths[origin.source])
    return (*before, Step(RELATED_TO, graph.entities[origin.via], graph.entities[entity], strength, origin.value))

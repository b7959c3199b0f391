"""Expansion from entities, in two forms.

ADR-041 entity expansion takes the chunks that mention a question's entities; hybrid GraphRAG takes the entities around
them and the chunks that mention those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.support.arithmetic import exp, ln, log
from hopbench.retrieval.types import Counters, Step

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class EntityMentions(NamedTuple):
    """The mentions of an entity: chunks as index rows, with the weights or the numbers of the mentions."""

    rows: Ints
    weights: NDArray[Any]


def read_mentions(batch: Batch, counters: Counters, entities: Sequence[str]) -> dict[str, EntityMentions]:
    """Read the mentions of each of a batch's entities in one round trip."""
    if not entities:
        return {}
    mentions = {}
    for record in batch.read(counters, cypher.ENTITY_CHUNKS, ids=list(entities)):
        counters.edges_touched += len(record["target"])
        rows = batch.index.rows([record["target"]])
        mentions[record["id"]] = EntityMentions(rows, np.array(record["weight"], dtype=np.float64))
    return mentions


def inverse_frequency(mentions: EntityMentions, chunks: int) -> float:
    """Compute ln((N + 1)/df), the idf of an entity mentioned in df of N chunks."""
    return ln((chunks + 1) / max(len(mentions.rows), 1))


@dataclass(frozen=True, slots=True)
class Matches:
    """The chunks that mention a question's entities: index rows, ascending, with values of each.

    `values` is the sum over the distinct entities matched (1 each in ADR-041), `cosines` the similarity to the
    question. The matched entities of row i are `owners[begins[i]:begins[i + 1]]`, indices into the question's entities,
    and `weights` are those of their mentions.
    """

    rows: Ints
    values: Floats
    cosines: Floats
    begins: Ints
    owners: Ints
    weights: Floats

    @property
    def scores(self) -> Floats:
        """Value + (1 + cosine)/4. The cosine adds at most half a count, so it only breaks ties of matched entities."""
        return self.values + (1.0 + self.cosines) / 4.0

    def matched(self, position: int) -> list[tuple[int, float]]:
        """(index of the entity, weight of its mention) for the entities in the chunk at a position, ascending."""
        part = slice(self.begins[position], self.begins[position + 1])
        return list(zip(self.owners[part].tolist(), self.weights[part].tolist(), strict=True))


def matches(
    batch: Batch, q: int, entities: Sequence[str], values: Sequence[float], mentions: Mapping[str, EntityMentions]
) -> Matches:
    """Sum for each chunk the values of the distinct entities of a question that it mentions."""
    found = [mentions[entity] for entity in entities]
    rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in found)])
    weights = np.concatenate([np.zeros(0), *(each.weights for each in found)])
    owners = np.repeat(np.arange(len(found)), [len(each.rows) for each in found])
    order = np.argsort(rows, kind="stable")  # owners stay ascending within a row
    unique, begins = np.unique(rows[order], return_index=True)
    total = np.add.reduceat(np.asarray(values, np.float64)[owners[order]], begins)
    near = cosines(batch.index.vectors, unique, batch.vectors[q])
    return Matches(unique, total, near, np.append(begins, len(rows)), owners[order], weights[order])


MAX_MENTIONS = 31  # log2(31 + 1)/5 = 1
_BOOSTS = 0.7 + 0.3 * log(np.arange(MAX_MENTIONS + 1) + 1.0) / (5.0 * ln(2.0))


def proximity(weight: float, hop: int) -> float:
    """Compute weight/10 · 1/2^(hop − 1), for a weight of 0..10."""
    return weight / 10.0 / 2.0 ** (hop - 1)


def mention_boosts(mentions: Ints) -> Floats:
    """Compute 0.7 + 0.3 · min(log2(mentions + 1)/5, 1). Three mentions: 0.7 + 0.3 · 2/5 = 0.82; from 31 on: 1."""
    return np.asarray(_BOOSTS[np.minimum(mentions, MAX_MENTIONS)])


class ShortestPath(NamedTuple):
    """The path to a neighbour: its smallest weight (0..10), number of edges, and the entity before the last."""

    weight: float
    hop: int
    via: str


def neighbors(start: str, related: Mapping[str, Mapping[str, float]], max_hops: int) -> dict[str, ShortestPath]:
    """The neighbourhood of `start`: per entity the fewest hops, and the best bottleneck weight of such paths."""
    paths: dict[str, ShortestPath] = {}
    frontier = {start: math.inf}
    for hop in range(1, max_hops + 1):
        reached: dict[str, ShortestPath] = {}
        for node in sorted(frontier):  # equal bottlenecks go to the smaller id
            for target, strength in related.get(node, {}).items():
                weight = min(frontier[node], round(10.0 * strength, DECIMALS))
                better = target not in reached or weight > reached[target].weight
                if target != start and target not in paths and better:
                    reached[target] = ShortestPath(weight, hop, node)
        paths |= reached
        frontier = {target: path.weight for target, path in reached.items()}
    return paths


@dataclass(slots=True)
class Surroundings:
    """Data read for a batch: relations (target → strength), mentions of neighbours, paths by start."""

    related: dict[str, dict[str, float]] = field(default_factory=dict)
    mentions: dict[str, EntityMentions] = field(default_factory=dict)
    paths: dict[str, dict[str, ShortestPath]] = field(default_factory=dict)

    def path(self, start: str, entity: str) -> tuple[Step, ...]:
        """The relations from `start` to a neighbour; a step's score is the proximity after it."""
        if entity == start:
            return ()
        path = self.paths[start][entity]
        score = round(proximity(path.weight, path.hop), DECIMALS)
        return (*self.path(start, path.via), Step(RELATED_TO, path.via, entity, self.related[path.via][entity], score))


def read_surroundings(
    batch: Batch,
    counters: Counters,
    starts: Sequence[str],
    max_hops: int,
    min_strength: float,
    rel_types: Sequence[str],
    floor: float | None = None,
) -> Surroundings:
    """Read `max_hops` steps around the entities of a batch, one round trip per hop.

    Edges are read down to `floor` (default: min_strength), so that trials with several thresholds read once; those
    weaker than min_strength are dropped and not charged.
    """
    around = Surroundings()
    frontier, wide = sorted(starts), sorted(starts)
    read: set[str] = set()
    limits = {"min_strength": min_strength if floor is None else floor, "rel_types": list(rel_types)}
    for _ in range(max_hops):
        if not frontier:
            break
        records = batch.memo.get(("around", tuple(wide), str(limits)), partial(_hop, batch, wide, limits))
        for node in frontier:
            around.related[node] = {
                to: weight for to, weight in records.related[node].items() if weight >= min_strength
            }
        targets = {target for node in frontier for target in around.related[node]}
        around.mentions.update((entity, records.mentions[entity]) for entity in targets if entity in records.mentions)
        edges = sum(len(around.related[node]) for node in frontier)
        edges += sum(len(records.mentions[entity].rows) for entity in targets if entity in records.mentions)
        counters.round_trips += 1
        counters.rows += edges
        counters.edges_touched += edges
        frontier = sorted(targets - around.related.keys())
        read |= set(wide)
        wide = sorted({target for node in wide for target in records.related[node]} - read)
    around.paths = {start: neighbors(start, around.related, max_hops) for start in starts}
    return around


def _hop(batch: Batch, ids: Sequence[str], limits: Mapping[str, object]) -> Surroundings:
    """Read the relations and mentions of one hop; the rows of mentions ascend."""
    hop = Surroundings()
    for record in batch.read_uncharged(cypher.NEIGHBORHOOD_HOP, ids=list(ids), **limits)[0]:
        targets, weights = record["target"], record["weight"]
        if record["kind"] == "R":
            strongest = dict(zip(targets, weights, strict=True))
            if len(strongest) < len(targets):  # parallel edges, only in external graphs: the strongest counts
                strongest = dict(sorted(zip(targets, weights, strict=True), key=lambda pair: pair[1]))
            hop.related[record["id"]] = strongest
        elif targets:
            rows = batch.index.rows([targets])
            order = np.argsort(rows)
            hop.mentions[record["id"]] = EntityMentions(rows[order], np.array(weights, np.int64)[order])
    return hop


@dataclass(frozen=True, slots=True)
class QuestionSurroundings:
    """The chunks around a question's entities: index rows, ascending, with their best scores and owners.

    `owners` points into `entities` (the neighbours) and `starts` (the recognised entity each is reached best from); it
    is -1 for a chunk that an edge of documents reached better, which `linked` has by row.
    """

    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    owners: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    entities: Sequence[str] = ()
    starts: Sequence[str] = ()
    linked: Mapping[int, Step] = field(default_factory=dict)

    def with_links(self, linked: Mapping[int, Step]) -> QuestionSurroundings:
        """Add chunks that edges of documents reach, or their edges where these score higher; by row."""
        known = dict(zip(self.rows.tolist(), zip(self.scores.tolist(), self.owners.tolist(), strict=True), strict=True))
        better = {row: step for row, step in linked.items() if step.score > known.get(row, (0.0, -1))[0]}
        known |= {row: (step.score, -1) for row, step in better.items()}
        rows = np.array(sorted(known), np.int64)
        scores = np.array([known[row][0] for row in rows.tolist()], np.float64)
        owners = np.array([known[row][1] for row in rows.tolist()], np.int64)
        return QuestionSurroundings(rows, scores, owners, self.entities, self.starts, better)

    def place(self, row: int) -> int | None:
        """The position of a row among the reached ones."""
        position = int(np.searchsorted(self.rows, row))
        return position if position < len(self.rows) and self.rows[position] == row else None


def question_surroundings(
    starts: Sequence[str], around: Surroundings, rarity: float, chunks: int
) -> QuestionSurroundings:
    """The best graph score of each chunk over all neighbours; ties go to the neighbour with the smaller id.

    With `rarity` above 0 a neighbour's score is multiplied by (1 − ln df/ln(chunks + 1)) ^ rarity, its df being the
    number of chunks that mention it: 1 for an entity of one chunk, near 0 for a hub.
    """
    best: dict[str, tuple[float, str]] = {}
    for start in starts:
        for entity, path in around.paths[start].items():
            value = proximity(path.weight, path.hop)
            if value > best.get(entity, (0.0, ""))[0]:
                best[entity] = value, start
    entities = [entity for entity in sorted(best) if entity in around.mentions]
    if not entities:
        return QuestionSurroundings()
    mentions = [around.mentions[entity] for entity in entities]
    sizes = np.array([len(each.rows) for each in mentions])
    values = np.array([best[entity][0] for entity in entities])
    if rarity:
        values = values * exp(rarity * log(1.0 - log(sizes) / ln(chunks + 1.0)))
    rows = np.concatenate([each.rows for each in mentions])
    boosts = mention_boosts(np.concatenate([each.weights for each in mentions]))
    scores = np.round(np.repeat(values, sizes) * boosts, DECIMALS)
    owners = np.repeat(np.arange(len(entities)), sizes)
    order = np.lexsort((owners, -scores, rows))
    unique, firsts = np.unique(rows[order], return_index=True)
    best_positions = order[firsts]
    return QuestionSurroundings(
        unique, scores[best_positions], owners[best_positions], entities, [best[entity][1] for entity in entities]
    )

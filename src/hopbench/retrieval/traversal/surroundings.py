"""The entities around an entity, and the chunks around a question's entities with document 5's graph score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.support.arithmetic import exp, ln, log
from hopbench.retrieval.types import Counters, Step

MOST_MENTIONS = 31  # log2(31 + 1)/5 = 1
_BOOSTS = 0.7 + 0.3 * log(np.arange(MOST_MENTIONS + 1) + 1.0) / (5.0 * ln(2.0))


def proximity(weight: float, hop: int) -> float:
    """weight/10 · 1/2^(hop − 1), for a weight of 0..10."""
    return weight / 10.0 / 2.0 ** (hop - 1)


def mention_boost(mentions: int) -> float:
    """.7 + .3 · min(log2(mentions + 1)/5, 1). Three mentions: .7 + .3 · 2/5 = .82; from 31 on: 1."""
    return float(_BOOSTS[min(mentions, MOST_MENTIONS)])


def graph_score(weight: float, hop: int, mentions: int) -> float:
    """Proximity · mention boost (document 5). Weight 8, three mentions: .8 · .82 = .656 at hop 1, .328 at hop 2."""
    return proximity(weight, hop) * mention_boost(mentions)


class ShortestPath(NamedTuple):
    """How a neighbour was reached: the path's smallest weight (0..10), its number of edges, the entity before."""

    weight: float
    hop: int
    via: str


def neighbors(start: str, related: Mapping[str, Mapping[str, float]], max_hops: int) -> dict[str, ShortestPath]:
    """The neighbourhood of `start` without itself: per entity the shortest hop and there the best bottleneck weight."""
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


class Mentions(NamedTuple):
    """The chunks (index rows, ascending) that mention an entity, how often each does, and the boost that this gives."""

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    boosts: NDArray[np.float64]


@dataclass(slots=True)
class Surroundings:
    """What was read for a batch: relations (target → strength), mentions of neighbours, paths by start."""

    related: dict[str, dict[str, float]] = field(default_factory=dict)
    mentions: dict[str, Mentions] = field(default_factory=dict)
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
    """Read `max_hops` steps around the entities of a whole batch, a round trip a hop.

    Edges are read down to `floor` (default: min_strength), and what is weaker than min_strength is left out and not
    charged: so trials with several thresholds read once.
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
    """One round trip's relations and mentions."""
    hop = Surroundings()
    for record in batch.read_uncharged(cypher.NEIGHBORHOOD_HOP, ids=list(ids), **limits)[0]:
        if record["kind"] == "R":
            hop.related[record["id"]] = _strongest(record["target"], record["weight"])
        elif record["target"]:
            hop.mentions[record["id"]] = _mentions(batch, record)
    return hop


def _strongest(targets: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """Target → strength; of parallel edges, which only a graph from elsewhere has, the strongest."""
    strongest = dict(zip(targets, weights, strict=True))
    if len(strongest) < len(targets):
        strongest = dict(sorted(zip(targets, weights, strict=True), key=lambda pair: pair[1]))
    return strongest


def _mentions(batch: Batch, record: Record) -> Mentions:
    rows = batch.index.rows([record["target"]])
    order = np.argsort(rows)
    counts = np.array(record["weight"], dtype=np.int64)[order]
    return Mentions(rows[order], counts, _BOOSTS[np.minimum(counts, MOST_MENTIONS)])


@dataclass(frozen=True, slots=True)
class QuestionSurroundings:
    """The chunks around a question's entities: index rows, ascending, with their best scores and owners.

    `owners` points into `entities` (the neighbours) and `starts` (the recognised entity each is reached best from).
    """

    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    owners: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    entities: Sequence[str] = ()
    starts: Sequence[str] = ()

    def place(self, row: int) -> int | None:
        """Where a row stands among the reached ones."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and self.rows[place] == row else None


def question_surroundings(
    starts: Sequence[str], around: Surroundings, rarity: float, chunks: int
) -> QuestionSurroundings:
    """The best graph score of each chunk over all neighbours; equal ones go to the neighbour with the smaller id.

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
    scores = np.round(np.repeat(values, sizes) * np.concatenate([each.boosts for each in mentions]), DECIMALS)
    owners = np.repeat(np.arange(len(entities)), sizes)
    order = np.lexsort((owners, -scores, rows))
    unique, firsts = np.unique(rows[order], return_index=True)
    best_places = order[firsts]
    return QuestionSurroundings(
        unique, scores[best_places], owners[best_places], entities, [best[entity][1] for entity in entities]
    )

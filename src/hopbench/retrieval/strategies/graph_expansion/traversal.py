"""Document 1's expansion of a whole batch, one round trip a depth; what it reaches does not depend on the scoring.

Trials share the first hop whatever their thresholds: there the best route to a chunk is one edge of each kind, so a hop
read with the lowest thresholds contains the best routes of every higher one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.graph_expansion.edge_lists import Floats, NodeScratch
from hopbench.retrieval.strategies.graph_expansion.expansion import Expansion, ExpansionLimits, FilteredHop, QuestionHop
from hopbench.retrieval.strategies.graph_expansion.routes import HopEdges
from hopbench.retrieval.types import Counters

Frontier = tuple[Sequence[str], Floats]  # chunk ids in order, each with the product that its route carries


def expand_batch(
    batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], key: Hashable, limits: ExpansionLimits
) -> list[Expansion]:
    """The expansion of each question from its seeds (`key` names them), cached for trials that score differently."""
    return batch.memo.charged(
        (name, key, limits), counters, lambda spent: _expand(batch, spent, name, seeds, key, limits)
    )


def _expand(
    batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], key: Hashable, limits: ExpansionLimits
) -> list[Expansion]:
    expansions = [Expansion(chunks, batch.index.row_of) for chunks in seeds]
    frontiers = {q: (sorted(chunks), np.ones(len(chunks))) for q, chunks in enumerate(seeds)}
    least = limits.min_similarity, limits.min_strength
    floors = batch.floor(name, "min_similarity", least[0]), batch.floor(name, "min_strength", least[1])
    for depth in range(1, limits.depth + 1):
        going = {q: ids for q, ids in frontiers.items() if ids[0] and len(expansions[q].rows) < limits.enough}
        if not going:
            break
        hop = _hop(batch, counters, going, floors, limits)
        make = partial(_question_hops, batch, hop if depth == 1 else hop.above(*least), going, depth, limits)
        hops = batch.memo.get(("legs", key, *floors), make) if depth == 1 else make()
        for q in going:
            filtered = FilteredHop.of(hops[q], limits)
            places = expansions[q].add(filtered)
            if depth < limits.depth:
                rows = filtered.hop.result.rows[places].tolist()
                frontiers[q] = [batch.index.ids[row] for row in rows], filtered.carried(places)
    return expansions


def _hop(
    batch: Batch,
    counters: Counters,
    going: Mapping[int, Frontier],
    floors: tuple[float, float],
    limits: ExpansionLimits,
) -> HopEdges:
    """One round trip, read down to the floors; only edges that pass the thresholds are charged."""
    ids = sorted({chunk for frontier, _ in going.values() for chunk in frontier})

    def read() -> HopEdges:
        records, _rows = batch.read_uncharged(
            cypher.EXPANSION_HOP, ids=ids, min_similarity=floors[0], min_strength=floors[1]
        )
        return HopEdges.read(records, ids, batch.index)

    hop = batch.memo.get(("hop", tuple(ids), *floors), read)
    edges = hop.edges(limits.min_similarity, limits.min_strength)
    counters.round_trips += 1
    counters.rows += edges
    counters.edges_touched += edges
    return hop


def _question_hops(
    batch: Batch, hop: HopEdges, going: Mapping[int, Frontier], depth: int, limits: ExpansionLimits
) -> dict[int, QuestionHop]:
    marks, product = (
        (NodeScratch(len(batch.index.chunks)), NodeScratch(len(hop.entities))),
        limits.path_strength == "product",
    )
    return {
        q: QuestionHop(hop, depth, ids, carried, hop.reach(ids, carried, product, marks))
        for q, (ids, carried) in going.items()
    }

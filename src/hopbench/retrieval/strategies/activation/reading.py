"""Reads the levels of document 3's spread: frontiers as query parameters, records as neighbourhoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.activation.edge_cache import EdgeCache
from hopbench.retrieval.strategies.activation.energy import NOT_COUNTED, Exploration, Neighbourhood, floored_jaccard
from hopbench.retrieval.strategies.activation.level import cached_neighbourhoods
from hopbench.retrieval.types import Counters

COLUMNS = ("source", "degree", "kind", "target", "weight", "tags")


def frontier_row(q: int, spreads: Sequence[Exploration], index: Index) -> dict[str, Any]:
    """A question's row of `cypher.ACTIVATION_HOP`: its seeds' frontiers in one, each node once.

    A node in several frontiers is asked for with its highest energy, so that what each needs comes back.
    """
    activation: dict[str, float] = {}
    for branch in (branch for spread in spreads for branch in spread.frontier):
        activation[branch.node] = max(activation.get(branch.node, 0.0), branch.energy)
    nodes = [{"id": node, "activation": activation[node]} for node in sorted(activation)]
    return {
        "q": q,
        "seeds": [spread.seed.node for spread in spreads if spread.frontier == [spread.seed]],
        "visited": sorted(set().union(*(spread.visited for spread in spreads))),
        "chunks": [node for node in nodes if node["id"] in index.row_of],
        "entities": [node for node in nodes if node["id"] not in index.row_of],
    }


def level(
    batch: Batch,
    counters: Counters,
    rows: Sequence[Mapping[str, Any]],
    tags: Sequence[Sequence[str]],
    tag_floor: float,
    thresholds: Mapping[str, float | bool],
) -> Mapping[int, Mapping[str, Neighbourhood]]:
    """A level's neighbourhoods by question and node: read from the store, or in a sweep from the trials' shared edges.

    `rows` are the questions' frontier rows, `thresholds` the other parameters of `cypher.ACTIVATION_HOP`.
    """
    edge_cache = _edge_cache(batch)
    if edge_cache is None:
        records = batch.read(counters, cypher.ACTIVATION_HOP, frontier=rows, **thresholds)
        counters.edges_touched += sum(len(record["target"]) for record in records)
        return neighbourhoods(records, tags, tag_floor, thresholds["min_weight"])
    neighbourhoods_of, seeds, edges = cached_neighbourhoods(
        edge_cache, batch.index.store, rows, tags, tag_floor, thresholds
    )
    counters.round_trips += 1
    counters.rows += seeds + edges
    counters.edges_touched += edges
    return neighbourhoods_of


def _edge_cache(batch: Batch) -> EdgeCache | None:
    """The edges shared with the trials to come; None where there are none."""
    floors, asked = batch.index.floors, [("activation", name) for name in ("min_similarity", "min_strength")]
    if batch.alone or not floors.keys() >= set(asked):
        return None
    least = [floors[one] for one in asked]
    return batch.index.memo.get(("activation edges", *least), lambda: EdgeCache(*least))


def neighbourhoods(
    records: Sequence[Record], tags: Sequence[Sequence[str]], tag_floor: float, min_weight: float
) -> dict[int, dict[str, Neighbourhood]]:
    """One level's records as question → node → neighbourhood; `tags` are the questions'."""
    around: dict[int, dict[str, Neighbourhood]] = {}
    for record in (record for record in records if record["part"] == "seeds"):
        nodes = around.setdefault(record["q"], {})
        for seed, connected in zip(record["source"], record["degree"], strict=True):
            nodes[seed] = Neighbourhood(NOT_COUNTED if connected else 0)
    wanted = [frozenset(each) for each in tags]
    for record in (record for record in records if record["part"] == "edges"):
        nodes, question = around.setdefault(record["q"], {}), wanted[record["q"]]
        for source, degree, kind, target, weight, own in zip(*(record[name] for name in COLUMNS), strict=True):
            here = nodes.get(source) or nodes.setdefault(source, Neighbourhood(degree))
            here.degree = degree
            shared = len(question.intersection(own)) if question else 0
            similarity = floored_jaccard(shared, len(own), len(question), tag_floor)
            here.edges.append((kind, target, max(min_weight, weight), similarity))
            here.tags.append(own)
    return around

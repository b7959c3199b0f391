"""Between document 3's energies and the store: what a level asks for, and what came back as neighbourhoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.activation.energy import NOT_COUNTED, Exploration, Neighbourhood, floored_jaccard
from hopbench.retrieval.strategies.activation.level import shared_neighbourhoods
from hopbench.retrieval.strategies.activation.shelf import EdgeShelf
from hopbench.retrieval.types import Counters

COLUMNS = ("source", "degree", "kind", "target", "weight", "tags")


def frontier_row(q: int, spreads: Sequence[Exploration], index: Index) -> dict[str, Any]:
    """What `cypher.ACTIVATION_HOP` needs of one question: its seeds' frontiers in one, each node once.

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
    """A level's neighbourhoods by question and node: read from the store, or in a sweep from what its trials share.

    `rows` are the questions' frontier rows, `thresholds` the other parameters of `cypher.ACTIVATION_HOP`.
    """
    shelf = _shelf(batch)
    if shelf is None:
        records = batch.read(counters, cypher.ACTIVATION_HOP, frontier=rows, **thresholds)
        counters.edges_touched += sum(len(record["target"]) for record in records)
        return neighbourhoods(records, tags, tag_floor, thresholds["min_weight"])
    found, seeds, edges = shared_neighbourhoods(shelf, batch.index.store, rows, tags, tag_floor, thresholds)
    counters.round_trips += 1
    counters.rows += seeds + edges
    counters.edges_touched += edges
    return found


def _shelf(batch: Batch) -> EdgeShelf | None:
    """Where trials to come will ask for the same edges again: what they share."""
    floors, asked = batch.index.floors, [("activation", name) for name in ("min_similarity", "min_strength")]
    if batch.alone or not floors.keys() >= set(asked):
        return None
    least = [floors[one] for one in asked]
    return batch.index.memo.get(("activation edges", *least), lambda: EdgeShelf(*least))


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

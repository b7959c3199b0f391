"""The queries of `cypher.activation` over an `ArrayGraph`: document 3's hop, and the edges that trials share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph, Gathered, Ints
from hopbench.retrieval.graph.stores.arrays.hops import Listed, at_least, listed
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.support.arrays import among, distinct

# Label → its edge types with the label of their far ends; the weight of the first is compared with its own threshold,
# that of MENTIONED_IN with `min_mention`.
KINDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    CHUNK: ((SIMILAR_TO, CHUNK), (MENTIONED_IN, ENTITY)),
    ENTITY: ((RELATED_TO, ENTITY), (MENTIONED_IN, CHUNK)),
}


def activation_hop(
    graph: ArrayGraph,
    *,
    frontier: Sequence[Mapping[str, Any]],
    min_similarity: float,
    min_strength: float,
    min_mention: float,
    min_weight: float,
    min_activation: float,
    tagged: bool,
) -> Iterator[Record]:
    """`cypher.ACTIVATION_HOP`."""
    least_of = {
        CHUNK: {SIMILAR_TO: min_similarity, MENTIONED_IN: min_mention},
        ENTITY: {RELATED_TO: min_strength, MENTIONED_IN: min_mention},
    }
    visited = {
        label: _pairs(graph, label, listed(graph, label, [row["visited"] for row in frontier])) for label in KINDS
    }
    sizes = np.array([len(row["visited"]) for row in frontier])
    found = [_seeds(graph, frontier, least_of[CHUNK])]
    for label, part in ((CHUNK, "chunks"), (ENTITY, "entities")):
        nodes = listed(graph, label, [[node["id"] for node in row[part]] for row in frontier])
        passing = _passing(graph, label, nodes.rows, least_of[label])
        degrees = np.sum([own.degrees for own in passing.values()], axis=0)
        energies = np.array([node["activation"] for row in frontier for node in row[part]], np.float64)[nodes.places]
        least = min_activation * np.sqrt(degrees) / energies
        enough = (least < 1.0) | (degrees <= sizes[nodes.lists])
        wanted = []
        for kind, far in KINDS[label]:
            own = passing[kind]
            around, needed = own.around, least[own.owners]
            back = among(nodes.lists[own.owners] * len(graph.nodes[far].ids) + around.others, visited[far])
            kept = (min_weight > needed) | (around.weights > needed) | back
            wanted.append(own.where(kept & enough[own.owners]))
        found.append(_edges(graph, label, nodes, len(frontier), wanted, tagged, degrees))
    for row, *parts in zip(frontier, *found, strict=True):
        yield from ({"q": row["q"], **columns} for columns in parts if columns["source"])


def activation_edges(
    graph: ArrayGraph,
    *,
    frontier: Sequence[Mapping[str, Any]],
    min_similarity: float,
    min_strength: float,
    min_mention: float,
) -> Iterator[Record]:
    """`cypher.ACTIVATION_EDGES`."""
    least_of = {
        CHUNK: {SIMILAR_TO: min_similarity, MENTIONED_IN: min_mention},
        ENTITY: {RELATED_TO: min_strength, MENTIONED_IN: min_mention},
    }
    for row in frontier:
        for label, part in ((CHUNK, "chunks"), (ENTITY, "entities")):
            nodes = listed(graph, label, [row[part]])
            if nodes.ids and label == CHUNK:
                yield {"part": "chunks", "source": nodes.ids, "kind": [], "target": [], "weight": [], "tags": []}
            passing = _passing(graph, label, nodes.rows, least_of[label])
            (columns,) = _edges(graph, label, nodes, 1, [*passing.values()], tagged=True)
            if columns["source"]:
                yield columns


def _pairs(graph: ArrayGraph, label: str, nodes: Listed) -> Ints:
    """The list and the row of each node in one number, ascending."""
    return distinct(nodes.lists * len(graph.nodes[label].ids) + nodes.rows)


def _seeds(
    graph: ArrayGraph, frontier: Sequence[Mapping[str, Any]], least: Mapping[str, float]
) -> list[dict[str, Any]]:
    """For each row of the frontier its known seeds, and whether each has an edge that reaches the thresholds."""
    seeds = listed(graph, CHUNK, [row["seeds"] for row in frontier])
    passing = _passing(graph, CHUNK, seeds.rows, least)
    connected = np.any([own.degrees > 0 for own in passing.values()], axis=0).tolist()
    nothing: dict[str, list[Any]] = {name: [] for name in ("kind", "target", "weight", "tags")}
    return [
        {"part": "seeds", "source": seeds.ids[part], "degree": connected[part], **nothing}
        for part in seeds.parts(len(frontier))
    ]


def _passing(graph: ArrayGraph, label: str, rows: Ints, least: Mapping[str, float]) -> dict[str, Gathered]:
    """The edges at nodes that reach the threshold of their type."""
    return {kind: at_least(graph, label, rows, kind, least[kind]) for kind, _ in KINDS[label]}


def _edges(
    graph: ArrayGraph,
    label: str,
    nodes: Listed,
    lists: int,
    found: Sequence[Gathered],
    tagged: bool,
    degrees: Ints | None = None,
) -> list[dict[str, Any]]:
    """For each of the `lists` of nodes the edges at them as parallel lists; `found` has an element for each kind.

    With `degrees`, (nodes,), each edge has that of its node.
    """
    columns: list[dict[str, Any]] = [{"part": "edges"} for _ in range(lists)]
    for (kind, far), own in zip(KINDS[label], found, strict=True):
        owners, around = own.owners, own.around
        tags = graph.edges[kind].columns["tags"]
        values = {
            "source": [nodes.ids[owner] for owner in owners.tolist()],
            "kind": [kind] * len(owners),
            "target": graph.ids(far, around.others),
            "weight": around.weights.tolist(),
            "tags": tags.many(around.edges.astype(np.int64)) if tagged else [[] for _ in range(len(owners))],
        }
        if degrees is not None:
            values["degree"] = degrees[owners].tolist()
        for one, part in zip(columns, nodes.parts(lists, owners), strict=True):
            for name, column in values.items():
                one.setdefault(name, []).extend(column[part])
    return columns

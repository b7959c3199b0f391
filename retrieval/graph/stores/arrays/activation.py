"""The queries of `cypher.activation` over an `ArrayGraph`: document 3's hop, and the edges that trials share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.graph import Around, ArrayGraph
from hopbench.retrieval.graph.stores.arrays.hops import known
from hopbench.retrieval.graph.stores.base import Record

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
    for row in frontier:
        yield from _seeds(graph, row, least_of[CHUNK])
        visited = {label: np.array(list(known(graph, label, row["visited"]).values()), np.int64) for label in KINDS}
        count = len(row["visited"])
        for label, part in ((CHUNK, "chunks"), (ENTITY, "entities")):
            edges = _Edges(graph, tagged)
            rows = known(graph, label, [node["id"] for node in row[part]])
            for node in row[part]:
                if node["id"] not in rows:
                    continue
                passing = _passing(graph, label, rows[node["id"]], least_of[label])
                degree = sum(len(around.edges) for around in passing.values())
                least = min_activation * sqrt(degree) / node["activation"]
                if least < 1.0 or degree <= count:
                    for kind, far in KINDS[label]:
                        own = passing[kind]
                        wanted = (own.weights > least) | np.isin(own.others, visited[far])
                        edges.add(node["id"], degree, kind, far, own if min_weight > least else own.where(wanted))
            if edges.columns["source"]:
                yield {"q": row["q"], "part": "edges", **edges.columns}


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
        chunks = known(graph, CHUNK, row["chunks"])
        nothing: dict[str, list[Any]] = {name: [] for name in ("kind", "target", "weight", "tags")}
        if chunks:
            yield {"part": "chunks", "source": [id_ for id_ in row["chunks"] if id_ in chunks], **nothing}
        for label, nodes in ((CHUNK, chunks), (ENTITY, known(graph, ENTITY, row["entities"]))):
            edges = _Edges(graph, tagged=True)
            for node, place in nodes.items():
                for (kind, far), around in zip(
                    KINDS[label], _passing(graph, label, place, least_of[label]).values(), strict=True
                ):
                    edges.add(node, 0, kind, far, around)
            columns = {name: values for name, values in edges.columns.items() if name != "degree"}
            if columns["source"]:
                yield {"part": "edges", **columns}


def _seeds(graph: ArrayGraph, row: Mapping[str, Any], least: Mapping[str, float]) -> Iterator[Record]:
    rows = known(graph, CHUNK, row["seeds"])
    ids = [id_ for id_ in row["seeds"] if id_ in rows]
    connected = [any(len(own.edges) for own in _passing(graph, CHUNK, rows[id_], least).values()) for id_ in ids]
    nothing: dict[str, list[Any]] = {name: [] for name in ("kind", "target", "weight", "tags")}
    if ids:
        yield {"q": row["q"], "part": "seeds", "source": ids, "degree": connected, **nothing}


def _passing(graph: ArrayGraph, label: str, row: int, least: Mapping[str, float]) -> dict[str, Around]:
    """The edges at a node that reach the threshold of their type."""
    passing = {}
    for kind, _ in KINDS[label]:
        around = graph.around(label, row, kind)
        passing[kind] = around.where(around.weights >= least[kind])
    return passing


class _Edges:
    """The parallel lists of a record."""

    def __init__(self, graph: ArrayGraph, tagged: bool) -> None:
        self._graph, self._tagged = graph, tagged
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("source", "degree", "kind", "target", "weight", "tags")
        }

    def add(self, node: str, degree: int, kind: str, far: str, around: Around) -> None:
        """Add a node's edges of a type, whose far ends have the label `far`."""
        count = len(around.edges)
        columns = self.columns
        columns["source"] += [node] * count
        columns["degree"] += [degree] * count
        columns["kind"] += [kind] * count
        columns["target"] += self._graph.ids(far, around.others)
        columns["weight"] += around.weights.tolist()
        if self._tagged:
            columns["tags"] += self._graph.edges[kind].columns["tags"].many(around.edges.astype(np.int64))
        else:
            columns["tags"] += [[] for _ in range(count)]

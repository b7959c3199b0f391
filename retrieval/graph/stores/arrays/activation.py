"""The queries of `cypher.activation` over an `ArrayGraph`: document 3's hop, and the edges that trials share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.edges import Ints
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph, Gathered
from hopbench.retrieval.graph.stores.arrays.hops import among, at_least, known
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
        visited = {label: np.array(sorted(known(graph, label, row["visited"]).values()), np.int64) for label in KINDS}
        for label, part in ((CHUNK, "chunks"), (ENTITY, "entities")):
            edges = _Edges(graph, tagged)
            rows = known(graph, label, [node["id"] for node in row[part]])
            nodes = [node for node in row[part] if node["id"] in rows]
            passing = _passing(graph, label, [rows[node["id"]] for node in nodes], least_of[label])
            degrees = np.sum([own.degrees for own in passing.values()], axis=0)
            energies = np.array([node["activation"] for node in nodes], np.float64)
            least = min_activation * np.sqrt(degrees) / energies
            enough = (least < 1.0) | (degrees <= len(row["visited"]))
            wanted = []
            for kind, far in KINDS[label]:
                own = passing[kind]
                around, needed = own.around, least[own.owners]
                kept = (min_weight > needed) | (around.weights > needed) | among(around.others, visited[far])
                wanted.append(own.where(kept & enough[own.owners]))
            edges.add([node["id"] for node in nodes], degrees, label, wanted)
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
            passing = _passing(graph, label, list(nodes.values()), least_of[label])
            edges.add(list(nodes), np.zeros(len(nodes), np.int64), label, list(passing.values()))
            columns = {name: values for name, values in edges.columns.items() if name != "degree"}
            if columns["source"]:
                yield {"part": "edges", **columns}


def _seeds(graph: ArrayGraph, row: Mapping[str, Any], least: Mapping[str, float]) -> Iterator[Record]:
    rows = known(graph, CHUNK, row["seeds"])
    ids = [id_ for id_ in row["seeds"] if id_ in rows]
    passing = _passing(graph, CHUNK, [rows[id_] for id_ in ids], least)
    connected = np.any([own.degrees > 0 for own in passing.values()], axis=0).tolist()
    nothing: dict[str, list[Any]] = {name: [] for name in ("kind", "target", "weight", "tags")}
    if ids:
        yield {"q": row["q"], "part": "seeds", "source": ids, "degree": connected, **nothing}


def _passing(graph: ArrayGraph, label: str, rows: Sequence[int], least: Mapping[str, float]) -> dict[str, Gathered]:
    """The edges at nodes that reach the threshold of their type."""
    every = np.array(rows, np.int64)
    return {kind: at_least(graph, label, every, kind, least[kind]) for kind, _ in KINDS[label]}


class _Edges:
    """The parallel lists of a record."""

    def __init__(self, graph: ArrayGraph, tagged: bool) -> None:
        self._graph, self._tagged = graph, tagged
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("source", "degree", "kind", "target", "weight", "tags")
        }

    def add(self, ids: Sequence[str], degrees: Ints, label: str, found: Sequence[Gathered]) -> None:
        """Add the edges at nodes of a label, an element of `found` for each of its `KINDS`."""
        columns = self.columns
        for (kind, far), own in zip(KINDS[label], found, strict=True):
            count = len(own.owners)
            columns["source"] += [ids[owner] for owner in own.owners.tolist()]
            columns["degree"] += degrees[own.owners].tolist()
            columns["kind"] += [kind] * count
            columns["target"] += self._graph.ids(far, own.around.others)
            columns["weight"] += own.around.weights.tolist()
            if self._tagged:
                columns["tags"] += self._graph.edges[kind].columns["tags"].many(own.around.edges.astype(np.int64))
            else:
                columns["tags"] += [[] for _ in range(count)]

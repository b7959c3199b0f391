"""Document 3's edges for the trials of a sweep: read once per node, down to the lowest thresholds of all trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.base import GraphStore, Record

KINDS = (SIMILAR_TO, RELATED_TO, MENTIONED_IN)
COLUMNS = ("source", "kind", "target", "weight", "tags")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CachedEdges:
    """Edges as they were read: those of node n are `begins[n]` to `ends[n]`, the tags of edge e the `tag_counts[e]`
    before `tag_ends[e]`. Nodes, kinds and tags are numbers."""

    begins: Ints
    ends: Ints
    kinds: Ints
    targets: Ints
    weights: Floats
    tags: Ints
    tag_counts: Ints
    tag_ends: Ints


class EdgeCache:
    """Nodes that trials have read, with their edges; `chunks` are the chunks among them that exist.

    `names` and `numbers` are of nodes, of these and of those that edges lead to. Safe for threads.
    """

    def __init__(self, min_similarity: float, min_strength: float) -> None:
        self._floors = {"min_similarity": min_similarity, "min_strength": min_strength, "min_mention": 0.0}
        self._lock = Lock()
        self._read: set[str] = set()
        self.chunks: set[str] = set()
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.tags: dict[str, int] = {}
        self._tag_names: list[str] = []
        nothing = np.zeros(0, np.int64)
        self._edges = CachedEdges(nothing, nothing, nothing, nothing, np.zeros(0), nothing, nothing, nothing)

    def read(self, store: GraphStore, rows: Sequence[Mapping[str, Any]]) -> CachedEdges:
        """The edges, with those of the frontier rows' nodes among them."""
        with self._lock:
            new = {
                part: sorted({node["id"] for row in rows for node in row[part]} - self._read)
                for part in ("chunks", "entities")
            }
            nodes = [*new["chunks"], *new["entities"]]
            if nodes:
                self._add(nodes, store.read(cypher.ACTIVATION_EDGES, **self._floors, frontier=[new]))
            return self._edges

    def _add(self, nodes: Sequence[str], records: Sequence[Record]) -> None:
        self.chunks.update(chain.from_iterable(record["source"] for record in records if record["part"] == "chunks"))
        edge_records = [record for record in records if record["part"] == "edges"]
        column = {name: list(chain.from_iterable(record[name] for record in edge_records)) for name in COLUMNS}
        sources = self._numbered([*nodes, *column["source"]])[len(nodes) :]
        targets = self._numbered(column["target"])
        order = np.argsort(sources, kind="stable")
        tags = [column["tags"][number] for number in order]
        counts = np.array([len(each) for each in tags], np.int64)
        kinds = np.array([KINDS.index(kind) for kind in column["kind"]], np.int64)
        old, numbers = self._edges, np.arange(len(self.names))
        begins = np.searchsorted(sources[order], numbers, side="left") + len(old.kinds)
        ends = np.searchsorted(sources[order], numbers, side="right") + len(old.kinds)
        known = np.flatnonzero(old.begins < old.ends)
        begins[known], ends[known] = old.begins[known], old.ends[known]
        tag_numbers = (self.tags.setdefault(tag, len(self.tags)) for tag in chain.from_iterable(tags))
        self._edges = CachedEdges(
            begins,
            ends,
            np.concatenate([old.kinds, kinds[order]]),
            np.concatenate([old.targets, targets[order]]),
            np.concatenate([old.weights, np.array(column["weight"], np.float64)[order]]),
            np.concatenate([old.tags, np.fromiter(tag_numbers, np.int64)]),
            np.concatenate([old.tag_counts, counts]),
            np.concatenate([old.tag_ends, np.cumsum(counts) + len(old.tags)]),
        )
        self._read.update(nodes)
        self._tag_names = list(self.tags)

    def tags_of(self, edges: CachedEdges, edge: int) -> list[str]:
        """The tags of an edge."""
        end = edges.tag_ends[edge]
        return [self._tag_names[tag] for tag in edges.tags[end - edges.tag_counts[edge] : end].tolist()]

    def _numbered(self, names: Iterable[str]) -> Ints:
        """The numbers of nodes, new ones at the end."""
        numbers = []
        for name in names:
            number = self.numbers.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
            numbers.append(number)
        return np.array(numbers, np.int64)

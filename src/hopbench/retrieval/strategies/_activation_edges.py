"""Edges of spreading activation for the trials of a sweep: read once per node, down to the lowest thresholds of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.base import GraphStore, Record
from hopbench.retrieval.strategies._activation_energy import NOT_COUNTED, Neighbourhood
from hopbench.retrieval.support.arrays import distinct, expand_ranges

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
        end = edges.tag_ends[edge]
        return [self._tag_names[tag] for tag in edges.tags[end - edges.tag_counts[edge] : end].tolist()]

    def _numbered(self, names: Iterable[str]) -> Ints:
        numbers = []
        for name in names:
            number = self.numbers.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
            numbers.append(number)
        return np.array(numbers, np.int64)


def cached_neighbourhoods(
    edge_cache: EdgeCache,
    store: GraphStore,
    rows: Sequence[Mapping[str, Any]],
    tags: Sequence[Sequence[str]],
    tag_floor: float,
    thresholds: Mapping[str, float | bool],
) -> tuple[dict[int, dict[str, Neighbourhood]], int, int]:
    """Question → node → neighbourhood, and how many seeds and edges the engine would have returned.

    `rows` are `activation.frontier_row`'s, `thresholds` the parameters of `cypher.ACTIVATION_HOP`, `tags` the
    questions'. Edges that neither pass enough on nor lead back are only counted: nothing needs them.
    """
    edges = edge_cache.read(store, rows)
    nodes = [(row["q"], node["id"], node["activation"]) for row in rows for node in (*row["chunks"], *row["entities"])]
    questions = np.array([q for q, _, _ in nodes], np.int64)
    numbers = np.array([edge_cache.numbers[name] for _, name, _ in nodes], np.int64)
    activations = np.array([activation for *_, activation in nodes], np.float64)
    at, of, degrees, back = _returned(edge_cache, edges, rows, (questions, numbers, activations), thresholds)
    similarities = _similarities(edge_cache, edges, at, questions[of], tags, tag_floor)
    weights = np.maximum(edges.weights[at], thresholds["min_weight"])
    # In the order of `transfer_energy`; the threshold is lower by what its rounding may add.
    energies = activations[of] * weights / np.sqrt(degrees[of]) * similarities
    shown = back | (energies > thresholds["min_activation"])
    degree_of = {(q, name): degree for (q, name, _), degree in zip(nodes, degrees.tolist(), strict=True)}
    # Whether a seed has edges is all that is known of it until some come back.
    around = {
        row["q"]: {
            seed: Neighbourhood(NOT_COUNTED if degree_of[row["q"], seed] else 0)
            for seed in row["seeds"]
            if seed in edge_cache.chunks
        }
        for row in rows
    }
    seeds = sum(map(len, around.values()))
    for place in distinct(of).tolist():
        q, name, _ = nodes[place]
        around[q][name] = Neighbourhood(int(degrees[place]), read_tags=partial(edge_cache.tags_of, edges))
    columns = (column[shown].tolist() for column in (of, at, weights, similarities))
    for place, edge, weight, similarity in zip(*columns, strict=True):
        q, name, _ = nodes[place]
        kind, target = KINDS[edges.kinds.item(edge)], edge_cache.names[edges.targets.item(edge)]
        around[q][name].edges.append((kind, target, weight, similarity))
        if thresholds["tagged"]:
            around[q][name].tags.append(edge)
    return around, seeds, len(at)


def _returned(
    edge_cache: EdgeCache,
    edges: CachedEdges,
    rows: Sequence[Mapping[str, Any]],
    nodes: tuple[Ints, Ints, Floats],
    thresholds: Mapping[str, float | bool],
) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
    """The edges that the query returns, the place of each one's node, all nodes' degrees, and which edges lead back."""
    questions, numbers, activations = nodes
    # The edges of each node that exist for the trial, and the place of the node.
    at, of = expand_ranges(edges.begins[numbers], edges.ends[numbers])
    lowest = np.array([thresholds[name] for name in ("min_similarity", "min_strength", "min_mention")])
    passing = edges.weights[at] >= lowest[edges.kinds[at]]
    at, of = at[passing], of[passing]
    degrees = np.bincount(of, minlength=len(numbers))
    # Whether each edge leads to a node that its question has visited.
    known = {row["q"]: [edge_cache.numbers[one] for one in row["visited"] if one in edge_cache.numbers] for row in rows}
    visited = [q * len(edges.begins) + number for q, own in known.items() for number in own]
    back = np.isin(questions[of] * len(edges.begins) + edges.targets[at], np.array(visited, np.int64))
    # The query's condition: the edge could pass enough energy if all tags agreed, or it leads back.
    needed = thresholds["min_activation"] * np.sqrt(degrees) / activations
    few = degrees <= np.array([len(known[q]) for q in questions.tolist()])
    enough = (edges.weights[at] > needed[of]) | (thresholds["min_weight"] > needed[of])
    returned = ((needed < 1.0) | few)[of] & (enough | back)
    return at[returned], of[returned], degrees, back[returned]


def _similarities(
    edge_cache: EdgeCache, edges: CachedEdges, at: Ints, questions: Ints, tags: Sequence[Sequence[str]], floor: float
) -> Floats:
    """`floored_jaccard` of each edge's tags with its question's."""
    asked = [frozenset(each) for each in tags]
    column_of = {tag: column for column, tag in enumerate(sorted(frozenset().union(*asked)))}
    columns = np.full(edges.tags.max(initial=-1) + 1, len(column_of))
    for tag, column in column_of.items():
        number = edge_cache.tags.get(tag, len(columns))
        columns[number : number + 1] = column  # beyond the end where no edge has the tag
    wanted = np.zeros((len(asked), len(column_of) + 1), bool)
    for q, each in enumerate(asked):
        wanted[q, [column_of[tag] for tag in each]] = True
    own, ends = edges.tag_counts[at], edges.tag_ends[at]
    tag_at, of = expand_ranges(ends - own, ends)
    common = wanted[questions[of], columns[edges.tags[tag_at]]]
    shared = np.bincount(of[common], minlength=len(at))
    sizes = np.array([len(each) for each in asked])[questions]
    similarities = floor + (1.0 - floor) * shared / np.maximum(own + sizes - shared, 1)
    return np.where(sizes == 0, 1.0, np.where(own == 0, floor, similarities))

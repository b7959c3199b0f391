"""Spreading activation: how one seed's energy spreads, and the edges that the trials of a sweep share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.base import GraphStore, Record
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.support.arrays import distinct, expand_ranges
from hopbench.retrieval.types import Step

MAX_DEPTH, BELOW_THRESHOLD, DEAD_END = "max_depth", "below_threshold", "dead_end"
EMPTY_FRONTIER, SEED_NOT_FOUND = "empty_frontier", "seed_not_found"
NOT_COUNTED = -1


def floored_jaccard(shared: int, edge: int, question: int, floor: float = 0.15) -> float:
    """Return the similarity of an edge's and a question's tags, from the sizes of both lists and of their overlap.

    1 without question tags, `floor` for an untagged edge, else floor + (1 − floor)·Jaccard: 1 of 6 gives
    0.15 + 0.85/6 = 0.292, no overlap 0.15.
    """
    if question == 0:
        return 1.0
    if edge == 0:
        return floor
    return floor + (1.0 - floor) * shared / (edge + question - shared)


def transfer_energy(activation: float, weight: float, degree: int, similarity: float) -> float:
    """T = R·w/√d · tag_sim, rounded to 9 decimals. 1·1/√4·0.292 = 0.146."""
    return round(activation * weight / math.sqrt(degree) * similarity, DECIMALS)


Edge = tuple[str, str, float, float]
"""An edge as its source sees it: type, target, weight (floored), similarity of its tags with the question's."""

Offer = tuple[float, str, str, float, int]
"""What a frontier node could pass on: −T, target, edge type, weight, place among the node's edges."""


@dataclass(slots=True)
class Neighbourhood:
    """A node's edges that may pass enough energy on or lead to what is visited; `degree` counts all of them.

    `NOT_COUNTED` stands for the degree of a node that has edges, none of which came back: they are all too weak.
    `tags` holds, by edge, what `read_tags` makes its tags from: only the tags of edges that are taken are read.
    """

    degree: int
    edges: list[Edge] = field(default_factory=list)
    tags: list[Any] = field(default_factory=list)
    read_tags: Callable[[Any], Sequence[str]] = tuple

    def tags_of(self, place: int) -> Sequence[str]:
        return self.read_tags(self.tags[place]) if self.tags else ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a path with the energy that reached it and the edge by which it came; a seed has no parent."""

    node: str
    energy: float
    depth: int = 0
    parent: Branch | None = None
    kind: str = ""
    weight: float = 0.0
    tags: Sequence[str] = ()

    def lineage(self) -> list[Branch]:
        line = [self]
        while line[-1].parent is not None:
            line.append(line[-1].parent)
        return line[::-1]

    def steps(self) -> tuple[Step, ...]:
        line = self.lineage()
        return tuple(Step(b.kind, a.node, b.node, b.weight, b.energy) for a, b in pairwise(line))


@dataclass(slots=True)
class Exploration:
    """One seed's breadth-first spread. `ended` are the complete paths, each by its last node, with why it ended."""

    seed: Branch
    frontier: list[Branch]
    visited: set[str]
    reached: list[Branch] = field(default_factory=list)
    ended: list[tuple[Branch, str]] = field(default_factory=list)

    @classmethod
    def start(cls, seed: str, activation: float) -> Exploration:
        branch = Branch(seed, activation)
        return cls(branch, [branch], {seed})

    def advance(self, around: Mapping[str, Neighbourhood], min_activation: float, max_branches: int) -> None:
        """One level: every frontier node's candidates, whose each is, the best of them, and the paths that end.

        A candidate belongs to the frontier node that passes it most energy, ties to the smaller node id, before any
        node takes its best `max_branches`: who loses a candidate takes its next. Equal energies go to the smaller id.
        """
        offers: dict[str, list[Offer]] = {}
        owner: dict[str, tuple[float, str]] = {}
        for branch in (branch for branch in self.frontier if branch.node in around):
            here = around[branch.node]
            own = offers[branch.node] = []
            for place, (kind, target, weight, similarity) in enumerate(here.edges):
                if target not in self.visited:
                    energy = transfer_energy(branch.energy, weight, here.degree, similarity)
                    if energy > min_activation:
                        own.append((-energy, target, kind, weight, place))
                        owner[target] = min(owner.get(target, (0.0, "")), (-energy, branch.node))
        taken: list[Branch] = []
        for branch in self.frontier:
            mine = sorted(offer for offer in offers.get(branch.node, ()) if owner[offer[1]][1] == branch.node)
            for lost, target, kind, weight, place in mine[:max_branches]:
                tags = around[branch.node].tags_of(place)
                taken.append(Branch(target, -lost, branch.depth + 1, branch, kind, weight, tags))
            if not mine:
                self.ended.append((branch, self._why(branch, around.get(branch.node), bool(offers.get(branch.node)))))
        self.frontier = taken
        self.reached += taken
        self.visited.update(branch.node for branch in taken)

    def _why(self, branch: Branch, here: Neighbourhood | None, offered: bool) -> str:
        if here is None:  # what a branch reached exists, so it has only edges that are too weak
            return BELOW_THRESHOLD if branch.parent else SEED_NOT_FOUND
        back = sum(target in self.visited for _, target, _, _ in here.edges)
        # A candidate lost to another branch is visited by now: all that could be entered has been.
        return DEAD_END if offered or back == here.degree else BELOW_THRESHOLD

    def finish(self) -> None:
        self.ended += [(branch, MAX_DEPTH) for branch in self.frontier]
        self.frontier = []

    def terminations(self) -> list[str]:
        """Why each path ended, and `empty_frontier` when all did before the maximum depth."""
        reasons = [why for _, why in self.ended]
        early = not {MAX_DEPTH, SEED_NOT_FOUND} & set(reasons)
        return [*reasons, EMPTY_FRONTIER] if early else reasons


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
    question_tags = [frozenset(each) for each in tags]
    column_of = {tag: column for column, tag in enumerate(sorted(frozenset().union(*question_tags)))}
    columns = np.full(edges.tags.max(initial=-1) + 1, len(column_of))
    for tag, column in column_of.items():
        number = edge_cache.tags.get(tag, len(columns))
        columns[number : number + 1] = column  # beyond the end where no edge has the tag
    wanted = np.zeros((len(question_tags), len(column_of) + 1), bool)
    for q, each in enumerate(question_tags):
        wanted[q, [column_of[tag] for tag in each]] = True
    own, ends = edges.tag_counts[at], edges.tag_ends[at]
    tag_at, of = expand_ranges(ends - own, ends)
    common = wanted[questions[of], columns[edges.tags[tag_at]]]
    shared = np.bincount(of[common], minlength=len(at))
    sizes = np.array([len(each) for each in question_tags])[questions]
    similarities = floor + (1.0 - floor) * shared / np.maximum(own + sizes - shared, 1)
    return np.where(sizes == 0, 1.0, np.where(own == 0, floor, similarities))

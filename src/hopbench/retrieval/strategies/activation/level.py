"""A level of document 3's spread, computed from the edges that a sweep's trials share.

The result and its cost are those of `cypher.ACTIVATION_HOP` for a trial alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.strategies.activation.edge_cache import KINDS, CachedEdges, EdgeCache, Floats, Ints
from hopbench.retrieval.strategies.activation.energy import NOT_COUNTED, Edge, Neighbourhood
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.support.distinct import distinct

Bools = NDArray[np.bool_]


class FrontierNodes(NamedTuple):
    """The frontier's nodes, a place each: (question, id), question, number, energy. `visited` numbers by question."""

    names: Sequence[tuple[int, str]]
    questions: Ints
    numbers: Ints
    activations: Floats
    visited: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]) -> FrontierNodes:
        """From frontier rows, in their order."""
        nodes = [(row["q"], node) for row in rows for node in (*row["chunks"], *row["entities"])]
        return cls(
            [(q, node["id"]) for q, node in nodes],
            np.array([q for q, _ in nodes], np.int64),
            np.array([numbers[node["id"]] for _, node in nodes], np.int64),
            np.array([node["activation"] for _, node in nodes], np.float64),
            {row["q"]: [numbers[node] for node in row["visited"] if node in numbers] for row in rows},
        )


def cached_neighbourhoods(
    edge_cache: EdgeCache,
    store: GraphStore,
    rows: Sequence[Mapping[str, Any]],
    tags: Sequence[Sequence[str]],
    tag_floor: float,
    thresholds: Mapping[str, float | bool],
) -> tuple[dict[int, dict[str, Neighbourhood]], int, int]:
    """Question → node → neighbourhood, and how many seeds and edges the engine would have returned.

    `rows` are `activation_reading.frontier_row`'s, `thresholds` the parameters of `cypher.ACTIVATION_HOP`, `tags` the
    questions'. Edges that neither pass enough on nor lead back are only counted: nothing asks for them.
    """
    edges = edge_cache.read(store, rows)
    frontier = FrontierNodes.of(rows, edge_cache.numbers)
    at, of = _passing(edges, frontier, thresholds)
    degrees = np.bincount(of, minlength=len(frontier.names))
    back = _leads_back(edges, frontier, at, of)
    returned = _returned(frontier, of, edges.weights[at], back, degrees, thresholds)
    at, of, back = at[returned], of[returned], back[returned]
    similarities = _similarities(edge_cache, edges, at, frontier.questions[of], tags, tag_floor)
    weights = np.maximum(edges.weights[at], thresholds["min_weight"])
    # In the order of `transfer_energy`; the threshold is lower by what its rounding may add.
    needed = back | (
        frontier.activations[of] * weights / np.sqrt(degrees[of]) * similarities > thresholds["min_activation"]
    )
    around = _seeds(edge_cache, rows, dict(zip(frontier.names, degrees.tolist(), strict=True)))
    seeds = sum(map(len, around.values()))
    for place in distinct(of).tolist():
        q, node = frontier.names[place]
        around[q][node] = Neighbourhood(int(degrees[place]), read_tags=partial(edge_cache.tags_of, edges))
    shown = _edges_of(edge_cache, edges, at[needed], weights[needed], similarities[needed])
    for place, edge, number in zip(of[needed].tolist(), shown, at[needed].tolist(), strict=True):
        q, node = frontier.names[place]
        around[q][node].edges.append(edge)
        if thresholds["tagged"]:
            around[q][node].tags.append(number)
    return around, seeds, len(at)


def _passing(edges: CachedEdges, asked: FrontierNodes, thresholds: Mapping[str, float | bool]) -> tuple[Ints, Ints]:
    """The edges of each node that exist for the trial, and the place of the node."""
    at, of = expand_ranges(edges.begins[asked.numbers], edges.ends[asked.numbers])
    least = np.array([thresholds[name] for name in ("min_similarity", "min_strength", "min_mention")])
    passing = edges.weights[at] >= least[edges.kinds[at]]
    return at[passing], of[passing]


def _leads_back(edges: CachedEdges, asked: FrontierNodes, at: Ints, of: Ints) -> Bools:
    """Whether each edge leads to a node that its question has visited."""
    nodes = len(edges.begins)
    visited = [q * nodes + number for q, numbers in asked.visited.items() for number in numbers]
    return np.isin(asked.questions[of] * nodes + edges.targets[at], np.array(visited, np.int64))


def _returned(
    asked: FrontierNodes, of: Ints, weights: Floats, back: Bools, degrees: Ints, thresholds: Mapping[str, float | bool]
) -> Bools:
    """The query's condition: the edge could pass enough energy if all tags agreed, or it leads back."""
    least = thresholds["min_activation"] * np.sqrt(degrees) / asked.activations
    visited = np.array([len(asked.visited[q]) for q in asked.questions.tolist()])
    enough = (weights > least[of]) | (thresholds["min_weight"] > least[of])
    return np.asarray(((least < 1.0) | (degrees <= visited))[of] & (enough | back))


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


def _seeds(
    edge_cache: EdgeCache, rows: Sequence[Mapping[str, Any]], degrees: Mapping[tuple[int, str], int]
) -> dict[int, dict[str, Neighbourhood]]:
    """The seeds that exist; whether they have edges is all that is known of them until some come back."""
    return {
        row["q"]: {
            seed: Neighbourhood(NOT_COUNTED if degrees[row["q"], seed] else 0)
            for seed in row["seeds"]
            if seed in edge_cache.chunks
        }
        for row in rows
    }


def _edges_of(
    edge_cache: EdgeCache, edges: CachedEdges, at: Ints, weights: Floats, similarities: Floats
) -> Iterable[Edge]:
    kinds = (KINDS[kind] for kind in edges.kinds[at].tolist())
    targets = (edge_cache.names[target] for target in edges.targets[at].tolist())
    return zip(kinds, targets, weights.tolist(), similarities.tolist(), strict=True)

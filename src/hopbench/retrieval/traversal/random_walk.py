"""Random walks with restart: over the whole graph by the power method, or locally, and the paths they take.

The local walk leaves thin mass behind, so that its cost does not grow with the graph: a node passes its mass on only
while it has at least `least` of it per edge, so a step touches at most `1/least` edges (the rule of Andersen, Chung and
Lang, FOCS 2006). The mass left behind bounds how far the result is from the whole walk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.graph.schema import LINKS_TO, MENTIONED_IN, NEXT, PART_OF, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.support.arrays import compact, distinct, expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Step

Matrix = NDArray[np.float64]


def inverse_frequencies(frequency: NDArray[np.int64], chunks: int) -> Matrix:
    """Compute ln((N + 1)/df) + 1 of entities mentioned in df of N chunks."""
    return log((chunks + 1) / np.maximum(frequency, 1)) + 1.0


def chunk_weights(similar: float, link: float = 0.0, section: float = 0.0) -> Mapping[str, float]:
    """The weights of edges between chunks by type; NEXT and PART_OF are of sections."""
    return {SIMILAR_TO: similar, LINKS_TO: link, NEXT: section, PART_OF: section}


def transitions(
    graph: Adjacency, mention: float, related: float, similar: float, link: float = 0.0, section: float = 0.0
) -> sparse.csr_array:
    """Build column-stochastic transitions over m entities, then n chunks, (m + n, m + n).

    A mention edge weighs `mention · idf/√df` of its entity, whatever its own weight; RELATED_TO and SIMILAR_TO weigh
    `related · strength` and `similar · similarity`, and edges of documents likewise, both ways. A node without edges
    keeps a zero column: its mass is lost.
    """
    idf = inverse_frequencies(graph.frequency, graph.mentions.shape[1])
    pattern = graph.mentions.copy()
    pattern.data[:] = 1.0
    scale = mention * idf / np.sqrt(np.maximum(graph.frequency, 1))
    links = sparse.csr_array(sparse.diags_array(scale) @ pattern)
    top = sparse.hstack([_weighed(graph.related, related), links])
    between = _weighed(graph.similar, similar)
    for kind, edges in graph.documents.items():
        if weight := chunk_weights(similar, link, section)[kind]:
            between = sparse.csr_array(between + weight * edges)
    bottom = sparse.hstack([links.T, between])
    whole = sparse.csr_array(sparse.vstack([top, bottom]))
    degree = np.asarray(whole.sum(axis=0)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    walk = sparse.csr_array(whole @ sparse.diags_array(inverse))
    walk.eliminate_zeros()
    walk.sort_indices()
    return walk


def _weighed(edges: sparse.csr_array, weight: float) -> sparse.csr_array:
    """Edges times a weight; an empty matrix for weight 0, which is common."""
    return sparse.csr_array(weight * edges) if weight else sparse.csr_array(edges.shape)


def power_iteration(walk: sparse.csr_array, seeds: Matrix, restart: float, steps: int) -> Matrix:
    """r ← restart · seed + (1 − restart) · walk @ r, from r = seed; columns are questions."""
    walk, returning, mass = (1.0 - restart) * walk, restart * seeds, seeds
    for _ in range(steps):
        mass = walk @ mass
        mass += returning
    return np.asarray(mass)


VERSION = "walk-3"  # of the cached files
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Incoming(NamedTuple):
    """Incoming transitions: node i receives `share[start[i]:start[i + 1]]` of the mass of each `giver[…]`."""

    start: NDArray[Any]
    giver: NDArray[Any]
    share: Floats


@dataclass(frozen=True, eq=False)
class SparseMass:
    """The mass `values` (k,) of the `nodes` (k,) that a walk reached, ascending; all others have none.

    Each value is at most the whole walk's, and their sum is at most `lost` below it. `touched` edges were read.
    """

    nodes: Ints
    values: Floats
    lost: float = 0.0
    touched: int = 0

    def __getitem__(self, nodes: Any) -> Any:
        """The mass of a node or of an array of nodes, like indexing a dense array."""
        positions = np.minimum(self.nodes.searchsorted(nodes), max(len(self.nodes) - 1, 0))
        return (
            np.where(self.nodes[positions] == nodes, self.values[positions], 0.0)
            if len(self.nodes)
            else 0.0 * positions
        )


@dataclass(frozen=True, eq=False)
class LocalWalk:
    """Transitions by node: node i passes `share[start[i]:start[i + 1]]` of its mass to `target[…]`.

    It receives the shares `received[…]` of these nodes' mass.
    """

    start: Ints
    target: NDArray[Any]
    share: Floats
    received: Floats

    @classmethod
    def over(cls, transition: sparse.csr_array) -> LocalWalk:
        """The walk of a column-stochastic matrix (nodes, nodes) with a symmetric sparsity pattern."""
        columns = sparse.csc_array(transition)
        columns.sort_indices()
        return cls(columns.indptr.astype(np.int64), compact(columns.indices), columns.data, transition.data)

    @classmethod
    def between(
        cls, graph: Adjacency, index: Index, mention: float, related: float = 0.0, *of_chunks: float
    ) -> LocalWalk:
        """The walk over an index's graph with these weights (`transitions`), built once per index.

        The walk over mention edges alone, the default of strategies, is cached in memory-mapped files.
        """
        weights = mention, related, *(of_chunks or (0.0,))

        def made() -> LocalWalk:
            return cls.over(transitions(graph, *weights))

        def read() -> LocalWalk:
            return cls(**index.graph_arrays("mention-walk", VERSION, lambda: vars(made())))

        return index.memo.get(("local walk", *weights), read if mention == 1.0 and not any(weights[1:]) else made)

    @property
    def incoming(self) -> Incoming:
        """The incoming transitions of each node."""
        return Incoming(self.start, self.target, self.received)

    def mass(self, seeds: Ints, shares: Floats, restart: float, steps: int, least: float) -> SparseMass:
        """The mass after `steps` steps; `seeds` (s,), ascending, start with `shares` (s,) and get them on restart."""
        nodes, mass, touched, lost = seeds, shares, 0, 0.0
        for _ in range(steps):
            begin, end = self.start[nodes], self.start[nodes + 1]
            passing = mass >= least * (end - begin)
            lost = (1.0 - restart) * (lost + fsum(mass[~passing].tolist()))
            edges, giver = expand_ranges(begin[passing], end[passing])
            target = self.target[edges]
            given = (1.0 - restart) * mass[passing][giver] * self.share[edges]
            nodes = distinct(np.concatenate([seeds, target]))
            mass = np.bincount(nodes.searchsorted(target), given, len(nodes)).astype(np.float64)
            mass[nodes.searchsorted(seeds)] += restart * shares
            touched += len(edges)
        return SparseMass(nodes, mass, lost, touched)


Mass = NDArray[np.float64] | SparseMass


def strongest_path(
    row: int, graph: Adjacency, walk: Incoming, mass: Mass, batch: Batch, weights: Mapping[str, float]
) -> tuple[Step, ...]:
    """The edges by which a walk brought a chunk most of its mass: two edges back from the chunk.

    `weights` are the walk's between chunks, by type of edge.
    """
    node = len(graph.entities) + row
    first = _strongest_giver(node, walk, mass)
    if first is None:
        return ()
    second = _strongest_giver(first[0], walk, mass, other_than=node)
    edges = [(first, node)] if second is None else [(second, first[0]), (first, node)]
    return tuple(_step(source, weight, target, mass, graph, batch, weights) for (source, weight), target in edges)


def _strongest_giver(node: int, walk: Incoming, mass: Mass, other_than: int = -1) -> tuple[int, float] | None:
    """The neighbour whose edge carries most mass to `node`, with that edge's weight."""
    begin, end = walk.start[node], walk.start[node + 1]
    givers, weights = walk.giver[begin:end], walk.share[begin:end]
    given = weights * mass[givers]
    given[givers == other_than] = 0.0
    best = int(given.argmax()) if len(given) else 0
    return (int(givers[best]), float(weights[best])) if len(given) and given[best] > 0 else None


def _step(
    source: int,
    weight: float,
    target: int,
    mass: Mass,
    graph: Adjacency,
    batch: Batch,
    weights: Mapping[str, float],
) -> Step:
    offset = len(graph.entities)
    names = [graph.entities[node] if node < offset else batch.index.ids[node - offset] for node in (source, target)]
    if source >= offset and target >= offset:
        between = {SIMILAR_TO: graph.similar, **graph.documents}
        kind = max(weights, key=lambda one: weights[one] * between[one][target - offset, source - offset])
    else:
        kind = MENTIONED_IN if source >= offset or target >= offset else RELATED_TO
    return Step(kind, names[0], names[1], round(weight, DECIMALS), round(float(mass[target]), DECIMALS))

"""A random walk with restart that leaves thin mass behind, so that its cost does not grow with the graph.

A node passes its mass on only while it has at least `least` of it per edge, so a step touches at most `1/least` edges
(the rule of Andersen, Chung and Lang, FOCS 2006). What is left behind bounds how far the result is from the whole walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.index import Index
from hopbench.retrieval.support.csr import compact, expand_ranges
from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.traversal.whole_walk import transitions

VERSION = "walk-3"  # of what is kept in files
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Incoming(NamedTuple):
    """By node what it is passed: node i `share[start[i]:start[i + 1]]` of the mass of each `giver[…]`."""

    start: NDArray[Any]
    giver: NDArray[Any]
    share: Floats


@dataclass(frozen=True, eq=False)
class SparseMass:
    """The mass of the `nodes` (k,) that a walk reached, ascending: `values` (k,); all others have none.

    Each value is at most the whole walk's, and all of them together miss at most `lost` of it. `touched` edges were
    read.
    """

    nodes: Ints
    values: Floats
    lost: float = 0.0
    touched: int = 0

    def __getitem__(self, nodes: Any) -> Any:
        """The mass of a node, or of an array of nodes, as of an array of all nodes."""
        places = np.minimum(self.nodes.searchsorted(nodes), max(len(self.nodes) - 1, 0))
        return np.where(self.nodes[places] == nodes, self.values[places], 0.0) if len(self.nodes) else 0.0 * places


@dataclass(frozen=True, eq=False)
class LocalWalk:
    """Transitions by node, both ways: node i passes `share[start[i]:start[i + 1]]` of its mass to `target[…]`.

    Of these nodes' mass it is passed `received[…]`.
    """

    start: Ints
    target: NDArray[Any]
    share: Floats
    received: Floats

    @classmethod
    def over(cls, transition: sparse.csr_array) -> LocalWalk:
        """The walk of a column-stochastic matrix (nodes, nodes) whose entry (i, j) is 0 just where (j, i) is."""
        columns = sparse.csc_array(transition)
        columns.sort_indices()
        return cls(columns.indptr.astype(np.int64), compact(columns.indices), columns.data, transition.data)

    @classmethod
    def between(
        cls, graph: Adjacency, index: Index, mention: float, related: float = 0.0, similar: float = 0.0
    ) -> LocalWalk:
        """The walk over an index's graph with these weights (`transitions`), made once per index.

        That over mention edges alone, which is the strategies' own, is kept in files and memory-mapped.
        """
        weights = mention, related, similar

        def made() -> LocalWalk:
            return cls.over(transitions(graph, *weights))

        def read() -> LocalWalk:
            return cls(**index.graph_arrays("mention-walk", VERSION, lambda: vars(made())))

        return index.memo.get(("local walk", *weights), read if weights == (1.0, 0.0, 0.0) else made)

    @property
    def incoming(self) -> Incoming:
        """What each node is passed."""
        return Incoming(self.start, self.target, self.received)

    def mass(self, seeds: Ints, shares: Floats, restart: float, steps: int, least: float) -> SparseMass:
        """The mass after `steps` steps; `seeds` (s,), ascending, begin with `shares` (s,) and get them back."""
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

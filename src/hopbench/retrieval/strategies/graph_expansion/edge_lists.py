"""The edges of one hop as arrays, and scratch arrays over nodes that questions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.csr import expand_ranges

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class EdgeLists(NamedTuple):
    """Edges of one kind in CSR layout: node n has `targets[starts[n] : starts[n + 1]]`, `weights` likewise."""

    starts: Ints
    targets: Ints
    weights: Floats

    @classmethod
    def of_edges(cls, nodes: int, sources: Ints, targets: Ints, weights: Sequence[float]) -> EdgeLists:
        """From edges (e,) by the numbers of their ends; those of a node stay in their order."""
        order = np.argsort(sources, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nodes))])
        return cls(starts, targets[order], np.array(weights, np.float64)[order])

    def above(self, least: float) -> EdgeLists:
        """Those with at least this weight."""
        strong = self.weights >= least
        starts = np.concatenate([[0], np.cumsum(strong)])[self.starts]
        return EdgeLists(starts, self.targets[strong], self.weights[strong])

    def of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The edges of some nodes, node by node: the node's index in `nodes`, and the edge's number."""
        edges, owners = expand_ranges(self.starts[nodes], self.starts[nodes + 1])
        return owners, edges


class NodeScratch:
    """Arrays over `size` nodes, reused from question to question, so that none of them allocates for all nodes."""

    def __init__(self, size: int) -> None:
        self._places = np.zeros(size, np.int64)
        self._values = np.zeros(size, np.float64)

    def firsts(self, nodes: Ints) -> Ints:
        """The indices of first occurrences in `nodes`."""
        places = np.arange(len(nodes))
        self._places[nodes[::-1]] = places[::-1]  # of several values for a node the last one stays
        return np.flatnonzero(self._places[nodes] == places)

    def places(self, nodes: Ints, values: Ints, wanted: Ints) -> Ints:
        """For each wanted node its value, −1 if it is not among `nodes`."""
        self._places[wanted] = -1
        self._places[nodes] = values
        return self._places[wanted]

    def values(self, nodes: Ints, values: Floats, wanted: Ints) -> Floats:
        """As `places`, but 0 if it is not among `nodes`."""
        self._values[wanted] = 0.0
        self._values[nodes] = values
        return self._values[wanted]

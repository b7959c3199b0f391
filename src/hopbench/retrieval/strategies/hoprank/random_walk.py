"""A short, local random walk with restart: it finds candidates that share no words with the question.

The walk of `pagerank` over mention edges, but a node passes its mass on only while it has at least `least` of it per
edge. A step so touches at most `1/least` edges, however large the corpus (the rule of Andersen, Chung and Lang,
FOCS 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, grouped
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.traversal.local_walk import LocalWalk

RESTART, STEPS, LEAST = 0.3, 8, 1e-4


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """Transitions over m entities, then n chunks, by column: the share that each node passes to its neighbours."""

    start: Numbers
    target: Numbers
    share: Floats
    entities: int

    @classmethod
    def over(cls, graph: Adjacency, index: Index) -> RandomWalk:
        """The walk over the mention edges of an index's graph, each weighing its entity's idf/√df."""
        walk = LocalWalk.between(graph, index, mention=1.0)
        return cls(walk.start, walk.target, walk.share, len(graph.entities))

    @property
    def nodes(self) -> int:
        """How many nodes there are, m + n."""
        return len(self.start) - 1

    def mass(
        self, seeds: Numbers, shares: Floats, restart: float = RESTART, steps: int = STEPS, least: float = LEAST
    ) -> tuple[Numbers, Floats, int]:
        """The chunks (c,) that have mass after `steps` steps, how much (c,), and how many edges were touched.

        `seeds` (s,) are sorted nodes, `shares` (s,) what each begins with and gets back. Of several walks side by side
        a node has the number walk · nodes + node, and a chunk walk · chunks + chunk.
        """
        size = self.nodes
        nodes, mass, touched = seeds, shares, 0
        for _ in range(steps):
            own = nodes % size
            begin, end = self.start[own], self.start[own + 1]
            passing = np.flatnonzero(mass >= least * (end - begin))
            edges, giver = expand_ranges(begin[passing], end[passing])
            target = self.target[edges] + (nodes - own)[passing][giver]
            given = (1.0 - restart) * mass[passing][giver] * self.share[edges]
            nodes, mass = _sums(np.concatenate([target, seeds]), np.concatenate([given, restart * shares]))
            touched += len(edges)
        walk, node = np.divmod(nodes, size)
        chunks = np.flatnonzero(node >= self.entities)
        return (node + walk * (size - self.entities) - self.entities)[chunks], mass[chunks], touched


def _sums(keys: Numbers, values: Floats) -> tuple[Numbers, Floats]:
    """The distinct keys, sorted, and the sum of the values of each, added in their order."""
    different, places, group = grouped(keys)
    return different, np.bincount(group, values[places]).astype(np.float64)

"""A short random walk with restart that stays where its mass is: candidates far from the question's own words.

The walk of `pagerank` over mention edges, but a node passes its mass on only while it has at least `least` of it per
edge. A step so touches at most `1/least` edges, however large the corpus (the rule of Andersen, Chung and Lang,
FOCS 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from retrieval.graph.adjacency import Adjacency
from retrieval.strategies.hoprank.words import Floats, Numbers, distinct, ranges
from retrieval.strategies.pagerank import transitions

RESTART, STEPS, LEAST = 0.3, 8, 1e-4


@dataclass(frozen=True, eq=False)
class Walk:
    """Transitions over m entities, then n chunks, by column: what each node passes on."""

    start: Numbers
    target: Numbers
    share: Floats
    entities: int

    @classmethod
    def over(cls, graph: Adjacency) -> Walk:
        """The walk over a graph's mention edges, each weighing its entity's idf/√df."""
        columns = sparse.csc_array(transitions(graph, 1.0, 0.0, 0.0))
        columns.sort_indices()
        return cls(columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data, len(graph.entities))

    def mass(
        self, seeds: Floats, restart: float = RESTART, steps: int = STEPS, least: float = LEAST
    ) -> tuple[Floats, int]:
        """The chunks' mass (n,) after `steps` steps from seeds (m + n,), and how many edges were touched."""
        mass, touched = seeds.copy(), 0
        seeded = nodes = np.flatnonzero(seeds)
        back = restart * seeds[seeded]
        for _ in range(steps):  # whatever a step does, it does for nodes with mass alone
            held = mass[nodes]
            begin, end = self.start[nodes], self.start[nodes + 1]
            passing = held >= least * (end - begin)
            edges, giver = ranges(begin[passing], end[passing])
            target = self.target[edges]
            mass[nodes] = 0.0
            np.add.at(mass, target, (1.0 - restart) * held[passing][giver] * self.share[edges])
            mass[seeded] += back
            nodes = distinct(np.concatenate([seeded, target]))
            touched += len(edges)
        return mass[self.entities :], touched

"""By which edges a walk brought a node most of its mass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.traversal.local_walk import Incoming, SparseMass
from hopbench.retrieval.types import Step

Mass = NDArray[np.float64] | SparseMass


def strongest_path(row: int, graph: Adjacency, walk: Incoming, mass: Mass, batch: Batch) -> tuple[Step, ...]:
    """The node that gave a chunk most of its mass, and the one that gave that node most: two edges back."""
    node = len(graph.entities) + row
    first = _strongest_giver(node, walk, mass)
    if first is None:
        return ()
    second = _strongest_giver(first[0], walk, mass, other_than=node)
    edges = [(first, node)] if second is None else [(second, first[0]), (first, node)]
    return tuple(_step(source, weight, target, mass, graph, batch) for (source, weight), target in edges)


def _strongest_giver(node: int, walk: Incoming, mass: Mass, other_than: int = -1) -> tuple[int, float] | None:
    """The neighbour whose edge carries most mass to `node`, with that edge's weight."""
    begin, end = walk.start[node], walk.start[node + 1]
    givers, weights = walk.giver[begin:end], walk.share[begin:end]
    given = weights * mass[givers]
    given[givers == other_than] = 0.0
    best = int(given.argmax()) if len(given) else 0
    return (int(givers[best]), float(weights[best])) if len(given) and given[best] > 0 else None


def _step(source: int, weight: float, target: int, mass: Mass, graph: Adjacency, batch: Batch) -> Step:
    offset = len(graph.entities)
    names = [graph.entities[node] if node < offset else batch.index.ids[node - offset] for node in (source, target)]
    kind = MENTIONED_IN if (source < offset) != (target < offset) else RELATED_TO if source < offset else SIMILAR_TO
    return Step(kind, names[0], names[1], round(weight, DECIMALS), round(float(mass[target]), DECIMALS))

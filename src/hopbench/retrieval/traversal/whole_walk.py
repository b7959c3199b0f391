"""A random walk with restart over all of a graph: its transitions, and the power method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.traversal.adjacency import Adjacency

Matrix = NDArray[np.float64]


def inverse_frequencies(frequency: NDArray[np.int64], chunks: int) -> Matrix:
    """ln((N + 1)/df) + 1 of entities that df of N chunks mention."""
    return log((chunks + 1) / np.maximum(frequency, 1)) + 1.0


def transitions(graph: Adjacency, mention: float, related: float, similar: float) -> sparse.csr_array:
    """Column-stochastic transitions over m entities then n chunks, (m + n, m + n).

    A mention edge weighs `mention · idf/√df` of its entity, whatever its own weight; RELATED_TO and SIMILAR_TO weigh
    `related · strength` and `similar · similarity`. A node without edges keeps a zero column: its mass is lost.
    """
    idf = inverse_frequencies(graph.frequency, graph.mentions.shape[1])
    pattern = graph.mentions.copy()
    pattern.data[:] = 1.0
    scale = mention * idf / np.sqrt(np.maximum(graph.frequency, 1))
    links = sparse.csr_array(sparse.diags_array(scale) @ pattern)
    top = sparse.hstack([_weighed(graph.related, related), links])
    bottom = sparse.hstack([links.T, _weighed(graph.similar, similar)])
    whole = sparse.csr_array(sparse.vstack([top, bottom]))
    degree = np.asarray(whole.sum(axis=0)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    walk = sparse.csr_array(whole @ sparse.diags_array(inverse))
    walk.eliminate_zeros()
    walk.sort_indices()
    return walk


def _weighed(edges: sparse.csr_array, weight: float) -> sparse.csr_array:
    """Edges times a weight; none for 0, which most of a graph's edges often have."""
    return sparse.csr_array(weight * edges) if weight else sparse.csr_array(edges.shape)


def power_iteration(walk: sparse.csr_array, seeds: Matrix, restart: float, steps: int) -> Matrix:
    """r ← restart · seed + (1 − restart) · walk @ r, from r = seed; columns are questions."""
    walk, returning, mass = (1.0 - restart) * walk, restart * seeds, seeds
    for _ in range(steps):
        mass = walk @ mass
        mass += returning
    return np.asarray(mass)

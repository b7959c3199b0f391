"""Leiden's communities of a weighted graph.

Leiden (Traag, Waltman and van Eck, arXiv 1810.08473; igraph's, seeded) maximises modularity over the strengths. What
is larger than `max_size` is partitioned again on its own, as GraphRAG does with its hierarchy (its default is 10 too);
a community that Leiden cannot divide stays whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Rows = NDArray[np.int64]
SEED = 1
PASSES = 2  # of Leiden over the graph, igraph's default


def partition(related: sparse.csr_array, resolution: float = 1.0, max_size: int = 10, seed: int = SEED) -> list[Rows]:
    """Communities of a symmetric (m, m) matrix of strengths: rows of each, ascending, ordered by their first row.

    The same matrix and seed give the same communities. Rows without an entry are left out.
    """
    import igraph

    edges = _upper(related)
    graph = igraph.Graph(n=related.shape[0], edges=np.stack([edges.row, edges.col], axis=1))
    graph.es["strength"] = edges.data.tolist()
    graph.vs["entity"] = range(related.shape[0])
    connected = graph.induced_subgraph(np.flatnonzero(np.diff(related.indptr)).tolist())
    igraph.set_random_number_generator(random.Random(seed))
    try:
        return sorted(_divided(connected, resolution, max_size), key=lambda rows: int(rows[0]))
    finally:
        igraph.set_random_number_generator(random)  # igraph's own default


def _divided(graph: Any, resolution: float, max_size: int) -> Iterator[Rows]:
    """Leiden's communities of an igraph graph, those that are too large divided again."""
    waiting = [graph] if graph.vcount() else []
    while waiting:
        clusters = waiting.pop().community_leiden(
            objective_function="modularity", weights="strength", resolution=resolution, n_iterations=PASSES
        )
        for part in clusters.subgraphs():
            if part.vcount() <= max_size or len(clusters) == 1:
                yield np.array(sorted(part.vs["entity"]), dtype=np.int64)
            else:
                waiting.append(part)


def _upper(related: sparse.csr_array) -> sparse.coo_array:
    """Each pair once, in an order that is the matrix's alone."""
    upper = sparse.csr_array(sparse.triu(related, 1))
    upper.sort_indices()
    return sparse.coo_array(upper)


def at_least(matrix: sparse.csr_array, minimum: float) -> sparse.csr_array:
    """The entries of a matrix that are at least `minimum`."""
    result = sparse.csr_array(matrix.copy())
    result.data[result.data < minimum] = 0.0
    result.eliminate_zeros()
    return result

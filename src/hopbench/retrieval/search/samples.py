"""A sample of rows with their true nearest neighbours, by which an approximate search is set and measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.exact import dense_top

SAMPLE = 1000  # rows: the standard error of a recall of .97 is about .002

Indices = NDArray[np.intp]


def true_neighbours(vectors: NDArray[np.float32], top_k: int, floor: float, sample: int) -> tuple[Indices, Indices]:
    """The `top_k` nearest rows of each of `SAMPLE` rows at equal distances: (row, neighbour), exactly.

    Samples 0 and 1 have no row in common, or are all rows, of a corpus too small for both.
    """
    step = len(vectors) // SAMPLE
    rows = np.arange(sample * (step // 2), len(vectors), step)[:SAMPLE] if step > 1 else np.arange(len(vectors))
    found, near = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for row, top in zip(rows, dense_top(vectors[rows], vectors, top_k + 1), strict=True):
        nearest = top.rows[(top.rows != row) & (top.scores >= floor)][:top_k]
        found.append(np.full(len(nearest), row))
        near.append(nearest)
    return np.concatenate(found), np.concatenate(near)

"""The best cells of large matrices of scores: float32 preselects, exact products decide.

A float32 product finds the cells that may be among the best: its last bits depend on the processor, on the tiles and on
the number of threads. What is kept are exact cosines of vectors on the grid (`arithmetic`), rounded to 6 decimals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.arithmetic import product_error

GROUPS = 1024
PAIRS = 512  # of vectors multiplied at a time: 2 MB, within the cache
DECIMALS = 6
ROUNDING = 2e-6  # similarities are compared when rounded to 6 decimals: cells this close may still change places

Cells = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.floating[Any]]]


def top_columns(scores: NDArray[np.floating[Any]], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The k best columns of each row of an (m, n) matrix, ties to the lower column: (row indices, column indices)."""
    if k == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    rows, columns = set_cells(scores >= kth_at_least(scores, k))
    rows, columns, _ = best_cells(rows, columns, scores[rows, columns], k)
    return rows, columns


def kth_at_least(scores: NDArray[Any], k: int, groups: int = GROUPS) -> NDArray[Any]:
    """A lower bound (m, 1) of each row's k-th best value, close to it; -inf where there are fewer than k columns.

    The k-th best among the maxima of disjoint groups of columns is such a bound, and one pass over the matrix finds it,
    where selecting the k-th best itself would take twice the product that made the matrix. `groups` is how many there
    are at least: of more, the bound is closer.
    """
    size = scores.shape[1] // max(groups, 16 * k)
    if size > 1:
        groups = scores.shape[1] // size
        scores = scores[:, : size * groups].reshape(len(scores), size, groups).max(axis=1)
    if scores.shape[1] < k:
        return np.full((len(scores), 1), -np.inf, np.float32)
    return np.partition(scores, -k, axis=1)[:, -k : scores.shape[1] - k + 1]


def slack(dimension: int) -> float:
    """How far below the k-th best float32 product a cell may lie and still be among the k best when rounded."""
    return 2.0 * product_error(dimension) + ROUNDING


def exact_cosines(
    vectors: NDArray[np.float32],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    others: NDArray[np.float32] | None = None,
) -> NDArray[np.float64]:
    """The cosines of pairs of rows of unit vectors on the grid, 6 decimals: the same whatever computes them.

    `second` are rows of `others`, or of `vectors` as well.
    """
    others = vectors if others is None else others
    cosines = np.empty(len(first))
    for begin in range(0, len(first), PAIRS):
        part = slice(begin, begin + PAIRS)
        pairs = vectors.take(first[part], axis=0), others.take(second[part], axis=0)
        cosines[part] = np.einsum("ij,ij->i", *(one.astype(np.float64) for one in pairs))
    return cosines.round(DECIMALS)


def best_cells(rows: NDArray[np.intp], columns: NDArray[np.intp], values: NDArray[np.floating[Any]], k: int) -> Cells:
    """The k best cells of each row, sorted by row, value (descending) and column."""
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    keep = np.arange(len(rows)) - np.searchsorted(rows, rows) < k
    return rows[keep], columns[keep], values[keep]


def set_cells(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """np.nonzero of an (m, n) matrix, several times as fast where few cells are set."""
    rows, columns = np.divmod(np.flatnonzero(mask), max(mask.shape[1], 1))
    return rows, columns

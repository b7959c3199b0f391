"""The best cells of large matrices of scores: float32 preselects, exact products decide.

A float32 product finds the cells that may be among the best: its last bits depend on the processor, on the tiles and on
the number of threads. What is kept are exact cosines of vectors on the grid (`arithmetic`), rounded to 6 decimals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.support.arithmetic import product_error

GROUPS = 1024
PAIRS = 512  # of vectors multiplied at a time: 2 MB, within the cache
DECIMALS = 6
TOGETHER = 1024  # questions that pass over the vectors together
PRODUCTS, LEAST_ROWS = 1 << 21, 4096  # held at a time: 8 MB, and of at least so many vectors
ROUNDING = 2e-6  # similarities are compared when rounded to 6 decimals: cells this close may still change places

Cells = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.floating[Any]]]


def top_columns(scores: NDArray[np.floating[Any]], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The k best columns of each row of an (m, n) matrix, ties to the lower column: (row indices, column indices)."""
    if k == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    rows, columns = set_cells(scores >= kth_at_least(scores, k))
    rows, columns, _ = best_cells(rows, columns, scores[rows, columns], k)
    return rows, columns


def rows_to_compare(questions: NDArray[np.float32], vectors: NDArray[np.float32], k: int) -> list[NDArray[np.intp]]:
    """For each of (q, d) questions the rows of (n, d) vectors that may be among its k best by cosine, ascending."""
    found: list[NDArray[np.intp]] = []
    for part in blocks(len(questions), TOGETHER):
        found += _rows_to_compare(questions[part], vectors, k)
    return found


def _rows_to_compare(questions: NDArray[np.float32], vectors: NDArray[np.float32], k: int) -> list[NDArray[np.intp]]:
    """A block of vectors after the other, so that products stay within the cache, however many vectors there are."""
    gap = np.float32(slack(vectors.shape[1]))
    size = min(max(PRODUCTS // len(questions), LEAST_ROWS), len(vectors))
    memory = np.empty(len(questions) * size, np.float32)  # fresh memory for each block takes as long as its product
    least = np.full((len(questions), 1), -np.inf, np.float32)
    held: list[Cells] = []
    for number, part in enumerate(blocks(len(vectors), size), 1):
        products = memory[: len(questions) * (part.stop - part.start)].reshape(len(questions), -1)
        np.matmul(questions, vectors[part].T, out=products)
        least = kth_at_least(products, k) - gap if number == 1 else least
        rows, columns = set_cells(products >= least)
        held.append((rows, columns + part.start, products[rows, columns]))
        if number > 1 and (number & (number - 1) == 0 or part.stop == len(vectors)):  # 2, 4, 8, …, and at the end
            held = [_raised(held, least, k, gap)]
    rows, columns, _ = held[0]
    order = np.argsort(rows, kind="stable")  # of each row, columns came in ascending
    return np.split(columns[order], np.searchsorted(rows[order], np.arange(1, len(questions))))


def _raised(parts: Sequence[Cells], least: NDArray[np.float32], k: int, gap: np.float32) -> Cells:
    """Raise each row's `least` (m, 1) to its k-th best product among the cells, less `gap`; the cells above it."""
    rows, columns, products = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((-products, rows))
    begins, counts = np.searchsorted(rows[order], np.arange(len(least))), np.bincount(rows, minlength=len(least))
    full = np.flatnonzero(counts >= k)
    least[full, 0] = np.maximum(least[full, 0], products[order][begins[full] + k - 1] - gap)
    above = products >= least[rows, 0]
    return rows[above], columns[above], products[above]


def kth_at_least(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.floating[Any]]:
    """A lower bound (m, 1) of each row's k-th best value, close to it; -inf where there are fewer than k columns.

    The k-th best among the maxima of disjoint groups of columns is such a bound, and one pass over the matrix finds it,
    where selecting the k-th best itself would take twice the product that made the matrix.
    """
    groups = max(GROUPS, 16 * k)
    size = scores.shape[1] // groups
    if size > 1:
        scores = scores[:, : size * groups].reshape(len(scores), size, groups).max(axis=1)
    if scores.shape[1] < k:
        return np.full((len(scores), 1), -np.inf, scores.dtype)
    return np.partition(scores, -k, axis=1)[:, -k : scores.shape[1] - k + 1]


def slack(dimension: int) -> float:
    """How far below the k-th best float32 product a cell may lie and still be among the k best when rounded."""
    return 2.0 * product_error(dimension) + ROUNDING


def exact_cosines(
    vectors: NDArray[np.float32], first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The cosines of pairs of rows of unit vectors on the grid, 6 decimals: the same whatever computes them."""
    cosines = np.empty(len(first))
    for begin in range(0, len(first), PAIRS):
        part = slice(begin, begin + PAIRS)
        pairs = vectors[first[part]].astype(np.float64), vectors[second[part]].astype(np.float64)
        cosines[part] = np.einsum("ij,ij->i", *pairs)
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

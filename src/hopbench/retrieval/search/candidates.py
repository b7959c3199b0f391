"""Which rows are nearest to each of n rows, or to each query: candidates by float32 products, decided by exact ones."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.arithmetic import product_error
from hopbench.retrieval.support.arrays import distinct

BLOCK = 4096
GROUPS = 1024
PAIRS = 512  # of vectors multiplied at a time: 2 MB, within the cache
DECIMALS = 6
ROUNDING = 2e-6  # similarities are compared when rounded to 6 decimals: cells this close may still change places
MIN_HELD = 1 << 17  # candidates before the first pruning: below that, sorting them costs more than they do
HELD_PER_NEIGHBOUR = 4  # candidates for each neighbour wanted, before the next pruning

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]
Cells = tuple[Indices, Indices, NDArray[np.floating[Any]]]


def blocks(count: int, size: int = BLOCK) -> Iterator[slice]:
    """The rows 0..count in slices."""
    return (slice(begin, min(begin + size, count)) for begin in range(0, count, size))


def top_columns(scores: NDArray[np.floating[Any]], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The k best columns of each row of an (m, n) matrix, ties to the lower column: (row indices, column indices)."""
    if k == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    rows, columns = set_cells(scores >= kth_at_least(scores, k))
    rows, columns, _ = best_cells(rows, columns, scores[rows, columns], k)
    return rows, columns


def kth_at_least(scores: NDArray[Any], k: int, groups: int = GROUPS) -> NDArray[Any]:
    """A lower bound (m, 1) of each row's k-th best value, close to it; -inf where there are fewer than k columns.

    It is the k-th best among the maxima of at least `groups` groups of columns: one pass over the matrix finds it.
    """
    size = scores.shape[1] // max(groups, 16 * k)
    if size > 1:
        groups = scores.shape[1] // size
        scores = scores[:, : size * groups].reshape(len(scores), size, groups).max(axis=1)
    if scores.shape[1] < k:
        return np.full((len(scores), 1), -np.inf, np.float32)
    return np.partition(scores, -k, axis=1)[:, -k : scores.shape[1] - k + 1]


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


class Pairs(NamedTuple):
    """Pairs of rows, first < second, sorted, with their exact cosine, 6 decimals."""

    first: Indices
    second: Indices
    cosine: NDArray[np.float64]

    def part(self, rows: slice) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.first[rows], self.second[rows], self.cosine[rows])


class Held(NamedTuple):
    """(h,) rows, each with a candidate and their product, and what `Candidates.least` (n,) has become by them."""

    rows: NDArray[np.int32]
    candidates: NDArray[np.int32]
    products: NDArray[np.float32]
    least: NDArray[np.float32]


class Candidates:
    """The rows that may be among the `k` nearest of each row of (n, d) unit vectors on the grid, at `floor` or above.

    Or of each of (q, d) `questions`. `least` is by row or question the product below which no more need be offered.
    float32 products only preselect: candidates clearly below the k-th best product so far are below the k-th best of
    all, so neither the order of the offers nor the number of threads decides the result. Each pair comes in once.
    """

    def __init__(
        self, vectors: NDArray[np.float32], k: int, floor: float, questions: NDArray[np.float32] | None = None
    ) -> None:
        self._vectors, self._k, self._floor = vectors, k, floor
        self._asking = vectors if questions is None else questions
        # How far below the k-th best float32 product a cell may lie and still be among the k best when rounded.
        slack = 2.0 * product_error(vectors.shape[1]) + ROUNDING
        self._gap = np.float32(slack)
        self._parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]] = []
        self._held, self._limit = 0, max(HELD_PER_NEIGHBOUR * k * len(self._asking), MIN_HELD)
        self._lock = Lock()
        self.least = np.full(len(self._asking), floor - slack, np.float32)

    def raise_least(self, rows: Indices | slice, kth: NDArray[np.float32] | np.float32) -> None:
        """Let `kth` be known as a lower bound of the k-th best product of `rows`."""
        with self._lock:
            self.least[rows] = np.maximum(self.least[rows], kth - self._gap)

    def offer(self, rows: Indices, candidates: Indices, products: NDArray[np.float32]) -> None:
        """Add a candidate to each of `rows`, with its float32 product."""
        with self._lock:
            self._parts.append((rows.astype(np.int32), candidates.astype(np.int32), products))
            self._held += len(rows)
            if self._held > self._limit:
                self._prune()

    def pairs(self) -> Pairs:
        """The pairs where one row is among the other's k nearest; equal cosines go to the row of the lower number."""
        rows, candidates = self.remaining()
        rows, candidates, values = best_cells(
            rows, candidates, exact_cosines(self._asking, rows, candidates, self._vectors), self._k
        )
        near = values >= self._floor
        low, high = np.minimum(rows, candidates)[near], np.maximum(rows, candidates)[near]
        keys, at = np.unique(low.astype(np.int64) * max(len(self._vectors), 1) + high, return_index=True)
        first, second = np.divmod(keys, max(len(self._vectors), 1))
        return Pairs(first, second, np.minimum(values[near][at], 1.0))

    def remaining(self) -> tuple[Indices, Indices]:
        """The rows and their candidates that are left, sorted by row: few more than k of each."""
        self._prune()
        rows, candidates, _ = self._joined()
        order = np.argsort(rows, kind="stable")
        return rows[order].astype(np.intp), candidates[order].astype(np.intp)

    def held(self) -> Held:
        """What is left, to go on with in another process; nothing may be offered meanwhile."""
        self._prune()
        return Held(*self._joined(), self.least)

    def take_over(self, held: Held) -> None:
        """Go on with what another one has held, in place of beginning."""
        self._parts, self._held = [held[:3]], len(held.rows)
        self.least = held.least.copy()  # it is raised in place, and what was read from a file may not be

    def _joined(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        if not self._parts:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
        rows, candidates, products = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        return rows, candidates, products

    def _prune(self) -> None:
        """Raise `least` to what the candidates show and drop those below it; of crowded rows keep the k nearest alone.

        Rows are crowded by many candidates within the gap, such as a text's copies.
        """
        rows, candidates, products = self._joined()
        self._parts.clear()
        bits = products.view(np.int32)
        ascending = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))  # floats as whole numbers of the same order
        order = np.argsort((rows.astype(np.int64) << 32) - ascending)  # whole numbers sort faster than pairs
        rows, candidates, products = rows[order], candidates[order], products[order]
        counts = np.bincount(rows, minlength=len(self.least))
        full = np.flatnonzero(counts >= self._k)
        kth = products[(np.cumsum(counts) - counts)[full] + self._k - 1]
        self.least[full] = np.maximum(self.least[full], kth - self._gap)
        keep = products >= self.least[rows]
        rows, candidates, products = rows[keep], candidates[keep], products[keep]
        crowded = np.bincount(rows, minlength=len(self.least))[rows] > 4 * self._k
        if crowded.any():
            tied = np.flatnonzero(crowded)
            pairs = rows[tied].astype(np.intp), candidates[tied].astype(np.intp)
            cosines = exact_cosines(self._asking, *pairs, self._vectors)
            order = np.lexsort((candidates[tied], -cosines, rows[tied]))
            chosen = tied[order[np.arange(len(order)) - np.searchsorted(rows[tied], rows[tied]) < self._k]]
            left = distinct(np.concatenate([np.flatnonzero(~crowded), chosen]))
            rows, candidates, products = rows[left], candidates[left], products[left]
        self._parts.append((rows, candidates, products))
        self._held = len(rows)
        self._limit = max(self._limit, 2 * self._held)

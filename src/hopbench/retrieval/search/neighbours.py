"""Which of n rows are nearest to each of them, or to each question: candidates of all, pruned while they come in.

A product in float32, or in bytes, says which pairs may be among the best; what is kept and put in order are exact
cosines (`topk`). A row's candidates clearly below its k-th best product so far are below the k-th best of all, so
neither the order in which pairs come in nor the number of threads that bring them decides what is found.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.topk import best_cells, exact_cosines, slack
from hopbench.retrieval.support.distinct import distinct

LEAST_HELD = 1 << 17  # candidates before the first pruning: below that, sorting them costs more than they do

HELD_FOR_EACH = 4  # candidates for each neighbour wanted, before the next pruning

Indices = NDArray[np.intp]


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

    Or of each of (q, d) `questions` in place of the rows themselves. `least`, a value for each who asks, is the product
    below which a row need not be offered another one. Safe for threads; a reader that sees an old value of `least`
    offers more than it needs to. Each pair of a row and a candidate comes in once. `error` (q,) is what is allowed for
    the difference of what is offered from the product of the two vectors, where that is more than float32's rounding:
    then the candidates are those whose products are not below the k-th best by more than twice that.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        k: int,
        floor: float,
        questions: NDArray[np.float32] | None = None,
        *,
        error: NDArray[np.float32] | None = None,
    ) -> None:
        self._vectors, self._k, self._floor = vectors, k, floor
        self._asking = vectors if questions is None else questions
        self._bounded = error is None
        gap = np.full(len(self._asking), slack(vectors.shape[1]))
        if error is not None:
            gap += 2.0 * error
        self._gap = gap.astype(np.float32)
        self._parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]] = []
        self._held, self._limit = 0, max(HELD_FOR_EACH * k * len(self._asking), LEAST_HELD)
        self._lock = Lock()
        self.least = (floor - gap).astype(np.float32)

    def raise_least(self, rows: Indices | slice, kth: NDArray[np.float32] | np.float32) -> None:
        """Let `kth` be known as a lower bound of the k-th best product of `rows`."""
        with self._lock:
            self.least[rows] = np.maximum(self.least[rows], kth - self._gap[rows])

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
        rows, candidates, values = best_cells(rows, candidates, self._cosines(rows, candidates), self._k)
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

    def _cosines(self, rows: Indices, candidates: Indices) -> NDArray[np.float64]:
        return exact_cosines(self._asking, rows, candidates, self._vectors)

    def _joined(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        if not self._parts:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
        rows, candidates, products = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        return rows, candidates, products

    def _prune(self) -> None:
        """Raise `least` to what the candidates show, and drop those below it."""
        rows, candidates, products = self._joined()
        self._parts.clear()
        order = np.argsort(_row_then_best(rows, products))
        rows, candidates, products = rows[order], candidates[order], products[order]
        counts = np.bincount(rows, minlength=len(self.least))
        full = np.flatnonzero(counts >= self._k)
        kth = products[(np.cumsum(counts) - counts)[full] + self._k - 1]
        self.least[full] = np.maximum(self.least[full], kth - self._gap[full])
        keep = products >= self.least[rows]
        self._parts.append(self._without_ties(rows[keep], candidates[keep], products[keep]))
        self._held = len(self._parts[0][0])
        self._limit = max(self._limit, 2 * self._held)

    def _without_ties(
        self, rows: NDArray[np.int32], candidates: NDArray[np.int32], products: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """The candidates, sorted as they are, with the k nearest alone of rows that have many within the gap.

        Such as a text's copies. Of products that are not bounded, the k nearest of each product.
        """
        crowded = np.bincount(rows, minlength=len(self.least))[rows] > 4 * self._k
        if not crowded.any():
            return rows, candidates, products
        tied = np.flatnonzero(crowded)
        cosines = self._cosines(rows[tied].astype(np.intp), candidates[tied].astype(np.intp))
        # Where products may be wrong by more than is allowed for, only those of the same product may drop one: what
        # they stand for stays as long as it would have.
        ranked = rows[tied] if self._bounded else _row_then_best(rows[tied], products[tied])
        order = np.lexsort((candidates[tied], -cosines, ranked))
        chosen = tied[order[np.arange(len(order)) - np.searchsorted(ranked, ranked) < self._k]]
        kept = distinct(np.concatenate([np.flatnonzero(~crowded), chosen]))
        return rows[kept], candidates[kept], products[kept]


def _row_then_best(rows: NDArray[np.int32], products: NDArray[np.float32]) -> NDArray[np.int64]:
    """Keys that sort by row and then by product, greatest first: whole numbers sort several times as fast as pairs."""
    bits = products.view(np.int32)
    ascending = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))  # floats as whole numbers of the same order
    return (rows.astype(np.int64) << 32) - ascending

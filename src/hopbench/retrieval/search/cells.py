"""Rows of unit vectors in cells around centroids (k-means), so that a search need not look at all of them.

Centroids and what is compared with them stand on a coarse grid of 2⁻¹¹, on which float32 products are exact: components
within ±1 give multiples of 2⁻²², and no partial sum is beyond 2 in size, which 24 bits hold. So the same vectors lie in
the same cells on every processor, whatever the number of threads; what a row is scored by is never a coarse product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.arithmetic import row_lengths

COARSE = 2.0**11
PER_CELL = 32  # vectors of the sample for each centroid: more of them did not raise the recall
ROUNDS = 6
BLOCK = 4096

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Cells:
    """The `centroids` (c, d) of n rows, on the coarse grid."""

    centroids: Floats

    @classmethod
    def fit(cls, vectors: Floats, count: int) -> Cells:
        """`count` centroids of (n, d) unit vectors, by spherical k-means on rows at equal distances."""
        step = max(len(vectors) // (count * PER_CELL), 1)
        sample = coarse(vectors[::step])
        centroids = sample[:: max(len(sample) // count, 1)][:count]
        for _ in range(ROUNDS):
            centroids = _moved(centroids, sample)
        return cls(centroids)

    def products(self, vectors: Floats) -> Floats:
        """How near each row is to each centroid (n, c), exactly."""
        return np.asarray(coarse(vectors) @ self.centroids.T)

    def own(self, vectors: Floats) -> Indices:
        """The cell of each row: the nearest centroid, the first of equals."""
        parts = [self.products(vectors[part]).argmax(axis=1) for part in blocks(len(vectors))]
        return np.concatenate(parts) if parts else np.zeros(0, np.intp)

    def own_and_second(self, vectors: Floats) -> tuple[Indices, Indices]:
        """The cell of each row and a second one, which a question that is far from the first may be near to.

        The second centroid leaves a residual that is short and as little parallel to that of the first as can be (SOAR:
        Sun et al., Improved Indexing for Approximate Nearest Neighbor Search, NeurIPS 2023, with λ = 1). With one
        centroid the second cell is the first.
        """
        between = self.centroids @ self.centroids.T
        parts = [self._two(coarse(vectors[part]), between) for part in blocks(len(vectors))]
        own, second = zip(*parts, strict=True) if parts else ((), ())
        nothing = np.zeros(0, np.intp)
        return np.concatenate([nothing, *own]), np.concatenate([nothing, *second])

    def _two(self, rows: Floats, between: Floats) -> tuple[Indices, Indices]:
        """Those of some rows on the coarse grid; `between` (c, c) are the centroids' products, exact like all here."""
        near = rows @ self.centroids.T
        own = near.argmax(axis=1)
        lengths, squares = (rows * rows).sum(axis=1), between.diagonal()
        to_own = near[np.arange(len(rows)), own]
        residual = lengths - 2.0 * to_own + squares[own]
        weight = np.divide(1.0, residual, out=np.zeros_like(residual), where=residual > 0)
        loss = between[own]  # (x − c₁)·(x − c₂), then squared and weighed, then |x − c₂|² − |x|² added
        loss -= near
        loss += (lengths - to_own)[:, None]
        loss *= loss
        loss *= weight[:, None]
        near *= np.float32(2.0)
        loss -= near
        loss += squares
        loss[np.arange(len(rows)), own] = np.inf
        return own, loss.argmin(axis=1) if loss.shape[1] > 1 else own


def kth_best(products: NDArray[Any], k: int) -> NDArray[Any]:
    """The k-th largest value of each row, or the smallest where there are fewer: (n,)."""
    k = min(k, products.shape[1])
    return np.asarray(np.partition(products, -k, axis=1)[:, -k])


def coarse(vectors: Floats) -> Floats:
    """Vectors with each component rounded to a multiple of 2⁻¹¹, on which products in float32 are exact."""
    return np.asarray(np.rint(vectors * np.float32(COARSE)) / np.float32(COARSE), np.float32)


def blocks(count: int, size: int = BLOCK) -> Iterator[slice]:
    """The rows 0..count in slices."""
    return (slice(begin, min(begin + size, count)) for begin in range(0, count, size))


def _moved(centroids: Floats, sample: Floats) -> Floats:
    """Each centroid in the middle of the sample's rows that are nearest to it; one without any stays."""
    from scipy.sparse import csr_matrix

    sums: NDArray[Any] = np.zeros(centroids.shape)
    for part in blocks(len(sample)):
        own = (sample[part] @ centroids.T).argmax(axis=1)
        ones = csr_matrix((np.ones(len(own)), (own, np.arange(len(own)))), shape=(len(centroids), len(own)))
        sums += ones @ sample[part].astype(np.float64)  # multiples of 2⁻¹¹: exact in any order
    lengths = row_lengths(sums)[:, None]
    return coarse(np.divide(sums, lengths, out=centroids.astype(np.float64), where=lengths > 0).astype(np.float32))

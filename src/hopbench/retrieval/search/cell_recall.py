"""Into how many cells a search must look: by where the true nearest rows of a sample of questions lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopbench.retrieval.search.byte_vectors import ByteVectors, byte_products
from hopbench.retrieval.search.cells import Floats, Indices
from hopbench.retrieval.search.exact import TopRows, dense_top

RECALL = 0.95  # share of the sample's true nearest rows that must be found; .975 moved figures by .005 at most
SAME = 1.0 - 1e-6  # cosine of a vector with itself


class Asked(NamedTuple):
    """Vectors (q, d) that ask, and for each, where given, rows to look at beside those of its cells."""

    vectors: Floats
    rows: Sequence[Indices] = ()


def nearest_others(asking: Floats, vectors: Floats, depth: int) -> list[Indices]:
    """The true `depth` nearest rows of each asking vector, best first; what equals it is none of them."""
    tops = dense_top(asking, vectors, depth + 1)
    return [top.rows[top.scores < SAME][:depth] for top in tops]


def ranks_of(
    centroids: ByteVectors, both: Indices, asking: Asked, nearest: Sequence[Indices], depth: int
) -> list[Indices]:
    """For each asking vector the ranks from 1, by nearness to it, of the cells of its `depth` nearest rows.

    Of the two cells of a row (2, n) it is the nearer one, and a row that is looked at in any case has rank 1. Equally
    near cells share the first of their ranks.
    """
    ranks = []
    given = asking.rows or [np.zeros(0, np.intp)] * len(asking.vectors)
    near = byte_products(ByteVectors.with_own_steps(asking.vectors).codes, centroids.codes)
    for products, others, rows in zip(near, nearest, given, strict=True):
        nearer = products[both[:, others[:depth]]].max(axis=0)
        rank = (products > nearer[:, None]).sum(axis=1) + 1
        ranks.append(np.where(np.isin(others[:depth], rows), 1, rank))
    return ranks


def needed(ranks: Sequence[Indices]) -> int:
    """Into how many cells to look so that `RECALL` of the rows are found."""
    ordered = np.sort(np.concatenate([np.ones(1, np.intp), *ranks]))
    return int(ordered[int(np.ceil(RECALL * len(ordered))) - 1])


def share_found(found: Sequence[TopRows], true: Sequence[TopRows], depth: int) -> float:
    """The share of the true `depth` best rows that searches have found; a vector itself, where it asks, left out."""
    hits = [
        np.isin(best.rows[:depth][best.scores[:depth] < SAME], top.rows) for top, best in zip(found, true, strict=True)
    ]
    return round(float(np.concatenate([np.ones(1, bool), *hits]).mean()), 4)

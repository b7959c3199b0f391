"""The nearest chunks of all chunks, exactly: every pair is multiplied once, for both of its ends."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction.rounds import Search, at_once
from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.search.neighbours import Candidates, Indices, Pairs
from hopbench.retrieval.search.topk import kth_at_least, set_cells
from hopbench.retrieval.support.arithmetic import on_grid

TILE_ROWS = 1024  # a tile of 1024 × 1024 products is 4 MB: within the cache

Vectors = NDArray[np.float32]


def exact_pairs(vectors: Vectors, *, top_k: int, floor: float, search: Search = at_once) -> Pairs:
    """Pairs of rows of (n, d) unit vectors where one is among the other's `top_k` nearest, at `floor` or above.

    Equal cosines go to the earlier row. Runs on as many threads as BLAS has.
    """
    vectors = on_grid(vectors)
    found = Candidates(vectors, top_k, floor)
    parts = [np.arange(part.start, part.stop) for part in blocks(len(vectors), TILE_ROWS)]

    def beyond(part: int) -> None:
        for others in parts[part + 1 :]:
            _offer_between(found, vectors, parts[part], others)

    within = [partial(offer_within, found, vectors, rows, top_k) for rows in parts]
    search(found, [*within, *(partial(beyond, part) for part in range(len(parts)))])
    return found.pairs()


def offer_within(found: Candidates, vectors: Vectors, rows: Indices, k: int) -> None:
    """Offer rows to each other, and let it be known how near their k-th best is."""
    block = vectors[rows]
    products = block @ block.T
    np.fill_diagonal(products, -np.inf)
    found.raise_least(rows, kth_at_least(products, k)[:, 0])
    here, there = set_cells(products >= found.least[rows, None])
    found.offer(rows[here], rows[there], products[here, there])


def _offer_between(found: Candidates, vectors: Vectors, rows: Indices, others: Indices) -> None:
    products = vectors[rows[0] : rows[-1] + 1] @ vectors[others[0] : others[-1] + 1].T
    here, there = set_cells(products >= found.least[rows, None])
    found.offer(rows[here], others[there], products[here, there])
    here, there = set_cells(products >= found.least[others])
    found.offer(others[there], rows[here], products[here, there])

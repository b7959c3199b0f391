"""How many of the true nearest neighbours a set of pairs holds, measured on a sample that is compared with all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.neighbours import Indices, Pairs
from hopbench.retrieval.search.samples import true_neighbours


def measured_recall(pairs: Pairs, vectors: NDArray[np.float32], *, top_k: int, floor: float) -> float:
    """The share of the true neighbours of `SAMPLE` rows of (n, d) unit vectors that are among the pairs.

    1 where no row has a neighbour at `floor` or above. It is the second sample: the first chose how far to look.
    """
    rows, neighbours = true_neighbours(vectors, top_k, floor, 1)
    if not len(rows):
        return 1.0
    keys = _keys(np.minimum(rows, neighbours), np.maximum(rows, neighbours), len(vectors))
    return float(np.isin(keys, _keys(pairs.first, pairs.second, len(vectors))).mean())


def _keys(first: Indices, second: Indices, count: int) -> NDArray[np.int64]:
    return first.astype(np.int64) * count + second

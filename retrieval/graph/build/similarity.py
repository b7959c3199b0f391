"""SIMILAR_TO: each chunk's nearest neighbours by cosine, the union of both ends' top k.

A float32 product finds the cells that may be among the best: its last bits depend on the processor, on the tiles and on
the number of threads. What is kept, compared with the floor and put in order are exact cosines of vectors on the grid
(`arithmetic`), rounded to 6 decimals, so edges depend on none of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import EDGE_COLUMNS, SIMILAR_TO
from hopbench.retrieval.search.topk import Cells, best_cells, exact_cosines, kth_at_least, set_cells, slack
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

BLOCK_ROWS = 512
TILE_COLUMNS = 16_384  # 32 MB of scores, whatever the corpus


def similar_table(
    chunks: Sequence[Chunk], vectors: NDArray[np.float32], tagger: Tagger, *, top_k: int, floor: float
) -> pd.DataFrame:
    """The SIMILAR_TO table of n chunks with unit vectors (n, d); similarity is the raw cosine, 6 decimals.

    Only pairs with similarity ≥ `floor` are kept; equal similarities go to the earlier chunk. Tags are the most
    salient stems that both chunks share.
    """
    pairs = nearest_pairs(vectors, top_k=top_k, floor=floor)
    stems = [set(tagger.stems(chunk.content)) for chunk in chunks]
    rows = []
    for (first, second), similarity in pairs.items():
        ends = sorted((first, second), key=lambda index: chunks[index].id)
        tags = tagger.top(sorted(stems[first] & stems[second]))
        rows.append((chunks[ends[0]].id, chunks[ends[1]].id, similarity, tags))
    return pd.DataFrame(rows, columns=list(EDGE_COLUMNS[SIMILAR_TO]))


def nearest_pairs(vectors: NDArray[np.float32], *, top_k: int, floor: float) -> dict[tuple[int, int], float]:
    """Pairs (i < j) of row indices of an (n, d) matrix where one end is among the other's top k, with their cosine."""
    vectors = on_grid(vectors)
    pairs: dict[tuple[int, int], float] = {}
    for begin in range(0, len(vectors), BLOCK_ROWS):
        rows, columns, cosines = _nearest(vectors, begin, top_k, floor)
        ends = np.sort(np.stack([rows, columns], axis=1), axis=1).tolist()
        pairs.update(zip(map(tuple, ends), map(float, cosines), strict=True))
    return {pair: min(similarity, 1.0) for pair, similarity in sorted(pairs.items())}


def _nearest(vectors: NDArray[np.float32], begin: int, k: int, floor: float) -> Cells:
    """The k nearest of each row of one block, itself left out: (row, column, cosine); tile by tile, for the cache.

    A cell that its tile shows to be out of reach is never sorted: of n columns some k for each tile remain, of which
    those within `slack(d)` of the k-th best are multiplied exactly.
    """
    block, gap = vectors[begin : begin + BLOCK_ROWS], slack(vectors.shape[1])
    here = np.arange(len(block))
    least = np.full((len(block), 1), floor - gap, np.float32)
    parts: list[Cells] = []
    for left, right in _tiles(len(vectors)):
        scores = block @ vectors[left:right].T
        own = here[(begin + here >= left) & (begin + here < right)]
        scores[own, begin + own - left] = -np.inf
        least = np.maximum(least, kth_at_least(scores, k) - gap)
        rows, columns = set_cells(scores >= least)
        parts.append((rows, columns + left, scores[rows, columns]))
    rows, columns, rough = (np.concatenate(part) for part in zip(*parts, strict=True))
    chosen = _within(rows, rough, k, gap, len(block))
    rows, columns = rows[chosen], columns[chosen]
    rows, columns, values = best_cells(rows, columns, exact_cosines(vectors, begin + rows, columns), k)
    keep = values >= floor
    return begin + rows[keep], columns[keep], values[keep]


def _within(
    rows: NDArray[np.intp], values: NDArray[np.floating[Any]], k: int, gap: float, count: int
) -> NDArray[np.bool_]:
    """Which cells of `count` rows are at most `gap` below their row's k-th best; all where a row has no more than k."""
    order = np.lexsort((-values, rows))
    begins = np.searchsorted(rows[order], np.arange(count + 1))
    full = np.flatnonzero(np.diff(begins) >= k)
    least = np.full(count, -np.inf, values.dtype)
    least[full] = values[order[begins[full] + k - 1]] - gap
    return np.asarray(values >= least[rows])


def _tiles(count: int) -> list[tuple[int, int]]:
    """Column ranges of TILE_COLUMNS, the last one shorter."""
    return [(begin, min(begin + TILE_COLUMNS, count)) for begin in range(0, count, TILE_COLUMNS)]

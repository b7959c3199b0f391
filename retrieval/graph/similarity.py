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

from hopbench.retrieval.arithmetic import on_grid, product_error
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, SIMILAR_TO
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

BLOCK_ROWS = 512
TILE_COLUMNS = 16_384  # 32 MB of scores, whatever the corpus
GROUPS = 1024
PAIRS = 512  # of vectors multiplied at a time: 2 MB, within the cache
DECIMALS = 6
ROUNDING = 2e-6  # similarities are compared when rounded to 6 decimals: cells this close may still change places

_Cells = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.floating[Any]]]


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
    """Pairs (i < j) of row indices of an (n, d) matrix that are in one of both ends' top k, with their cosine."""
    vectors = on_grid(vectors)
    pairs: dict[tuple[int, int], float] = {}
    for begin in range(0, len(vectors), BLOCK_ROWS):
        rows, columns, found = _nearest(vectors, begin, top_k, floor)
        ends = np.sort(np.stack([rows, columns], axis=1), axis=1).tolist()
        pairs.update(zip(map(tuple, ends), map(float, found), strict=True))
    return {pair: min(similarity, 1.0) for pair, similarity in sorted(pairs.items())}


def _nearest(vectors: NDArray[np.float32], begin: int, k: int, floor: float) -> _Cells:
    """The k nearest of each row of one block, itself left out: (row, column, cosine); tile by tile, for the cache.

    A cell that its tile shows to be out of reach is never sorted: of n columns some k for each tile remain, of which
    those within `slack(d)` of the k-th best are multiplied exactly.
    """
    block, gap = vectors[begin : begin + BLOCK_ROWS], slack(vectors.shape[1])
    here = np.arange(len(block))
    least = np.full((len(block), 1), floor - gap, np.float32)
    parts: list[_Cells] = []
    for left, right in _tiles(len(vectors)):
        scores = block @ vectors[left:right].T
        own = here[(begin + here >= left) & (begin + here < right)]
        scores[own, begin + own - left] = -np.inf
        least = np.maximum(least, kth_at_least(scores, k) - gap)
        rows, columns = _cells(scores >= least)
        parts.append((rows, columns + left, scores[rows, columns]))
    rows, columns, rough = (np.concatenate(part) for part in zip(*parts, strict=True))
    chosen = _within(rows, rough, k, gap, len(block))
    rows, columns = rows[chosen], columns[chosen]
    rows, columns, values = _best(rows, columns, exact_cosines(vectors, begin + rows, columns), k)
    keep = values >= floor
    return begin + rows[keep], columns[keep], values[keep]


def slack(dimension: int) -> float:
    """How far below the k-th best float32 product a cell may lie and still be among the k best when rounded."""
    return 2.0 * product_error(dimension) + ROUNDING


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


def exact_cosines(
    vectors: NDArray[np.float32], first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The cosines of pairs of rows of unit vectors on the grid, 6 decimals: the same whatever computes them."""
    found = np.empty(len(first))
    for begin in range(0, len(first), PAIRS):
        part = slice(begin, begin + PAIRS)
        pairs = vectors[first[part]].astype(np.float64), vectors[second[part]].astype(np.float64)
        found[part] = np.einsum("ij,ij->i", *pairs)
    return found.round(DECIMALS)


def _tiles(count: int) -> list[tuple[int, int]]:
    """Column ranges of TILE_COLUMNS, the last one shorter."""
    return [(begin, min(begin + TILE_COLUMNS, count)) for begin in range(0, count, TILE_COLUMNS)]


def top_columns(scores: NDArray[np.floating[Any]], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The k best columns of each row of an (m, n) matrix, ties to the lower column: (row indices, column indices)."""
    if k == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    rows, columns = _cells(scores >= kth_at_least(scores, k))
    rows, columns, _ = _best(rows, columns, scores[rows, columns], k)
    return rows, columns


def _cells(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """np.nonzero of an (m, n) matrix, several times as fast where few cells are set."""
    rows, columns = np.divmod(np.flatnonzero(mask), max(mask.shape[1], 1))
    return rows, columns


def _best(rows: NDArray[np.intp], columns: NDArray[np.intp], values: NDArray[np.floating[Any]], k: int) -> _Cells:
    """The k best cells of each row, sorted by row, value (descending) and column."""
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    keep = np.arange(len(rows)) - np.searchsorted(rows, rows) < k
    return rows[keep], columns[keep], values[keep]


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

"""SIMILAR_TO: each chunk's nearest neighbours by cosine, the union of both ends' top k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from retrieval.graph.schema import EDGE_COLUMNS, SIMILAR_TO
from retrieval.text import Tagger
from retrieval.types import Chunk

BLOCK_ROWS = 512


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
    count = len(vectors)
    pairs: dict[tuple[int, int], float] = {}
    for begin in range(0, count, BLOCK_ROWS):
        block = np.round(vectors[begin : begin + BLOCK_ROWS] @ vectors.T, 6)
        block[np.arange(len(block)), np.arange(begin, begin + len(block))] = -np.inf
        for row, column in zip(*top_columns(block, top_k), strict=True):
            similarity = float(block[row, column])
            if similarity >= floor:
                first, second = sorted((begin + int(row), int(column)))
                pairs[first, second] = min(round(similarity, 6), 1.0)
    return dict(sorted(pairs.items()))


def top_columns(scores: NDArray[np.floating[Any]], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The k best columns of each row of an (m, n) matrix, ties to the lower column: (row indices, column indices)."""
    k = min(k, scores.shape[1])
    if k == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    threshold = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    rows, columns = np.nonzero(scores >= threshold)
    values = scores[rows, columns]
    order = np.lexsort((columns, -values, rows))
    rows, columns = rows[order], columns[order]
    position = np.arange(len(rows)) - np.searchsorted(rows, rows)
    keep = position < k
    return rows[keep], columns[keep]

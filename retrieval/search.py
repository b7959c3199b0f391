"""The two searches every strategy starts from: BM25 and exact cosine, each with a total order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.graph.similarity import top_columns

DEPTH = 100
FLOAT32_DECIMALS = 6  # what survives a different order of summation in another batch


@dataclass(frozen=True, slots=True)
class Candidates:
    """One question's best chunks: rows into the index (chunks sorted by id) with scores, best first, ties by id."""

    rows: NDArray[np.intp]
    scores: NDArray[np.float64]


class LexicalIndex:
    """BM25 over title and text as bm25s computes it: Lucene's variant, k1 1.5, b .75, English stop words, no stemmer."""

    def __init__(self, contents: Sequence[str]) -> None:
        import bm25s

        self._tokenize = lambda texts: bm25s.tokenize(texts, stopwords="en", show_progress=False, return_ids=False)
        self._index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        tokens = self._tokenize(list(contents))
        self._empty = not any(tokens)
        if not self._empty:
            self._index.index(tokens, show_progress=False)
        self._size = len(contents)

    def scores(self, question: str) -> NDArray[np.float64]:
        """BM25 of every chunk, shape (n,)."""
        (tokens,) = self._tokenize([question])
        known = [token for token in tokens if token in self._index.vocab_dict] if not self._empty else []
        if not known:
            return np.zeros(self._size)
        scores = self._index.get_scores(known).astype(np.float64)
        return np.asarray(np.round(scores, FLOAT32_DECIMALS), np.float64)

    def top(self, question: str, depth: int = DEPTH) -> Candidates:
        """The best chunks with a positive score."""
        scores = self.scores(question)
        rows = best_rows(scores[None, :], depth)[0]
        rows = rows[scores[rows] > 0]
        return Candidates(rows, scores[rows])


def dense_top(questions: NDArray[np.float32], chunks: NDArray[np.float32], depth: int = DEPTH) -> list[Candidates]:
    """The best chunks by cosine for (q, d) question vectors against (n, d) chunk vectors, both of unit length."""
    scores = np.round((questions @ chunks.T).astype(np.float64), FLOAT32_DECIMALS)
    return [Candidates(rows, scores[i, rows]) for i, rows in enumerate(best_rows(scores, depth))]


def best_rows(scores: NDArray[np.float64], depth: int) -> list[NDArray[np.intp]]:
    """Column indices of each row's `depth` best values of a (q, n) matrix, best first, ties to the lower index."""
    rows, columns = top_columns(scores, depth)
    return np.split(columns, np.searchsorted(rows, np.arange(1, len(scores))))

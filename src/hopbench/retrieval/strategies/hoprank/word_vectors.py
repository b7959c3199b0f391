"""Vectors of single words from WordLlama's bundled model, whatever embeds the passages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hopbench.retrieval.embedding.base import unit_rows
from hopbench.retrieval.embedding.wordllama_model import WordLlamaEmbedder
from hopbench.retrieval.support.arithmetic import row_lengths

# Components are counted in steps of 2⁻¹¹: int16 holds them in half the memory of float32, which sums their products
# exactly and in any order (whole numbers, no partial sum beyond 2²²).
STEPS = 2**11
WEIGHT_GRID = 2.0**8  # of idf: sums of weighted vectors are exact in float64
ROWS = 4096
TOGETHER = 65_536
DIMENSION = WordLlamaEmbedder.dimension


@cache
def _model() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def word_vectors(words: Sequence[str]) -> NDArray[np.int16]:
    """Vectors of words, (k, 256), of length `STEPS`."""
    vectors = np.empty((len(words), DIMENSION), np.int16)
    for begin in range(0, len(words), TOGETHER):  # in float32, those of a million passages' words take 2.5 GB
        part = words[begin : begin + TOGETHER]
        vectors[begin : begin + len(part)] = _in_steps(_model().embed(part))
    return vectors


def lengths(
    vectors: NDArray[np.int16], weights: NDArray[np.float64], numbers: NDArray[Any], start: NDArray[Any]
) -> NDArray[np.float64]:
    """The lengths of texts' vectors, (s,): of the sums of their words' vectors (v, 256), each by its weight (v,).

    `numbers` (t,) are the words of all texts, `start` (s + 1,) offsets into them. Weighing by idf is half of Arora et
    al., A simple but tough-to-beat baseline for sentence embeddings, ICLR 2017.
    """
    parts = [np.zeros(0)]
    for begin in range(0, len(start) - 1, ROWS):
        ends = start[begin : begin + ROWS + 1]
        weight = on_weight_grid(weights[numbers[ends[0] : ends[-1]]])
        weighing = np.flatnonzero(weight)  # stop words, some half of all, add nothing
        used, place = np.unique(numbers[ends[0] + weighing], return_inverse=True)
        of_texts = weight[weighing], place, weighing.searchsorted(ends - ends[0])
        counts = csr_array(of_texts, shape=(len(ends) - 1, len(used)))
        parts.append(row_lengths(counts @ vectors[used].astype(np.float64)) / STEPS)
    return np.concatenate(parts)


def weighed(vectors: NDArray[np.int16], weights: NDArray[np.float64]) -> NDArray[np.int16]:
    """Vectors of length `STEPS`, (m, 256): sums of those of some words (w, 256), each by its weight, (m, w)."""
    return _in_steps(unit_rows(on_weight_grid(weights) @ vectors.astype(np.float64)))


def on_weight_grid(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights as multiples of 2⁻⁸."""
    return np.asarray(np.rint(weights * WEIGHT_GRID) / WEIGHT_GRID)


def cosines(first: NDArray[np.int16], second: NDArray[np.int16]) -> NDArray[np.float32]:
    """Cosines of vectors (m, 256) and (n, 256), (m, n), the same on every processor."""
    return np.asarray(first.astype(np.float32) @ second.astype(np.float32).T / STEPS**2)


def _in_steps(vectors: NDArray[np.floating[Any]]) -> NDArray[np.int16]:
    return np.asarray(np.rint(vectors * STEPS), np.int16)

"""Fusion of several rankings into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

RRF_K = 60
DECIMALS = 9

Scored = Sequence[tuple[str, float]]
"""Chunk ids with scores, best first."""


def ordered(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """A total order: score rounded to 9 decimals, descending, then chunk id."""
    rounded = ((chunk, round(score, DECIMALS)) for chunk, score in scores.items())
    return sorted(rounded, key=lambda item: (-item[1], item[0]))


def min_max(scored: Scored) -> dict[str, float]:
    """Scores stretched to 0..1 over the list; equal scores all become 1."""
    if not scored:
        return {}
    values = [score for _, score in scored]
    low, high = min(values), max(values)
    if high == low:
        return {chunk: 1.0 for chunk, _ in scored}
    return {chunk: (score - low) / (high - low) for chunk, score in scored}


def weighted(parts: Iterable[tuple[float, Scored]]) -> dict[str, float]:
    """Σ weight · min-max score over the union of the lists; a chunk absent from a list has 0 there.

    With weights 0.7 and 0.3, a chunk first in both lists scores 0.7·1 + 0.3·1 = 1.
    """
    total: defaultdict[str, float] = defaultdict(float)
    for weight, scored in parts:
        for chunk, score in min_max(scored).items():
            total[chunk] += weight * score
    return dict(total)


def rank_shares(own: Sequence[str], initial: Sequence[str], share: float) -> dict[str, float]:
    """A ranking fused with the initial one: (1 − share)·61/(60 + own rank) + share·61/(60 + initial rank).

    First in both: 1. With share 0.5, first in its own and absent from the initial: 0.5.
    """
    scores = {chunk: (1.0 - share) * (RRF_K + 1) / (RRF_K + rank) for rank, chunk in enumerate(own, 1)}
    for rank, chunk in enumerate(initial if share else (), 1):
        scores[chunk] = scores.get(chunk, 0.0) + share * (RRF_K + 1) / (RRF_K + rank)
    return scores


def reciprocal_rank(rankings: Iterable[Sequence[str]], k: int = RRF_K) -> dict[str, float]:
    """Reciprocal rank fusion: Σ 1/(k + rank), ranks from 1 (Cormack, Clarke and Büttcher, SIGIR 2009).

    First in one list and third in another: 1/(60+1) + 1/(60+3).
    """
    total: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, chunk in enumerate(ranking, 1):
            total[chunk] += 1.0 / (k + rank)
    return dict(total)


def rows_by_reciprocal_rank(
    lists: Mapping[str, NDArray[np.int64]], weights: Mapping[str, float], keep: int
) -> tuple[NDArray[np.int64], list[float], dict[str, NDArray[np.float64]]]:
    """Weighted reciprocal rank fusion of lists of chunk rows, each row once in a list; chunks are sorted by id.

    The best `keep` rows in the order of `ordered`, their scores, and what each list gives to each of them, rounded.
    """
    rows, places = np.unique(np.concatenate(list(lists.values())), return_inverse=True)
    total, parts, begin = np.zeros(len(rows)), dict[str, NDArray[np.float64]](), 0
    for name, own in lists.items():
        parts[name] = np.zeros(len(rows))
        parts[name][places[begin : begin + len(own)]] = 1.0 / (RRF_K + np.arange(1, len(own) + 1))
        total += weights[name] * parts[name]
        begin += len(own)
    total = np.round(total, DECIMALS)
    best = np.lexsort((rows, -total))[:keep]
    return rows[best], total[best].tolist(), {name: part[best].round(DECIMALS) for name, part in parts.items()}

"""Where a candidate stands among the others of its question: distances and ranks."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.strategies.hoprank.features import Feature
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.words import Floats


def rank_of(values: Floats) -> Floats:
    """Each value's rank in its list from 0, equal ones in their order here."""
    order, ranks = (-values).argsort(axis=-1, kind="stable"), np.empty(values.shape)
    np.put_along_axis(ranks, order, np.arange(values.shape[-1], dtype=np.float64), axis=-1)
    return ranks


def behind(values: Floats) -> Floats:
    """Each value minus the best one of its list."""
    return np.asarray(values - values.max(axis=-1, keepdims=True))


def lead_over(facts: ListFacts, rank: int) -> Floats:
    """The linear score minus that at a rank from 0, the last where there are fewer."""
    return np.asarray(facts.score - facts.score[..., min(rank, facts.score.shape[-1] - 1), None])


def lead_1(facts: ListFacts) -> Floats:
    """The linear score minus the best."""
    return lead_over(facts, 0)


def lead_2(facts: ListFacts) -> Floats:
    """The linear score minus the second best."""
    return lead_over(facts, 1)


def lead_3(facts: ListFacts) -> Floats:
    """The linear score minus the third best."""
    return lead_over(facts, 2)


def lead_4(facts: ListFacts) -> Floats:
    """The linear score minus the fourth best."""
    return lead_over(facts, 3)


def lead_5(facts: ListFacts) -> Floats:
    """The linear score minus the fifth best."""
    return lead_over(facts, 4)


def gap_above(facts: ListFacts) -> Floats:
    """The linear score of the next one above minus its own, 0 for the best."""
    return np.asarray(-np.diff(facts.score, prepend=facts.score[..., :1]))


def gap_below(facts: ListFacts) -> Floats:
    """Its own linear score minus that of the next one below, 0 for the last."""
    return np.asarray(-np.diff(facts.score, append=facts.score[..., -1:]))


def rank(facts: ListFacts) -> Floats:
    """Its rank by the linear score, from 0."""
    return np.broadcast_to(np.arange(facts.score.shape[-1], dtype=np.float64), facts.score.shape)


def first_lead(facts: ListFacts) -> Floats:
    """The score of the first pass minus the best."""
    return behind(facts.first_score)


def first_rank(facts: ListFacts) -> Floats:
    """Its rank in the first pass."""
    return rank_of(facts.first_score)


def pool_lead(facts: ListFacts) -> Floats:
    """The pool's score minus the best."""
    return behind(facts.pool_score)


def pool_rank(facts: ListFacts) -> Floats:
    """Its rank in the pool."""
    return rank_of(facts.pool_score)


def bm25_rank(facts: ListFacts) -> Floats:
    """Its rank by `bm25`."""
    return rank_of(facts.base[..., 0])


def dense_rank(facts: ListFacts) -> Floats:
    """Its rank by `dense`."""
    return rank_of(facts.base[..., 1])


def coverage_rank(facts: ListFacts) -> Floats:
    """Its rank by `coverage`."""
    return rank_of(facts.base[..., 4])


def sentence_rank(facts: ListFacts) -> Floats:
    """Its rank by `sentence`."""
    return rank_of(facts.base[..., 5])


def walk_rank(facts: ListFacts) -> Floats:
    """Its rank by `walk`."""
    return rank_of(facts.base[..., 6])


def path_rank(facts: ListFacts) -> Floats:
    """Its rank by `path_any`."""
    return rank_of(facts.paths[..., 4])


STANDING: tuple[Feature, ...] = (
    lead_1,
    lead_2,
    lead_3,
    lead_4,
    lead_5,
    gap_above,
    gap_below,
    rank,
    first_lead,
    first_rank,
    pool_lead,
    pool_rank,
    bm25_rank,
    dense_rank,
    coverage_rank,
    sentence_rank,
    walk_rank,
    path_rank,
)

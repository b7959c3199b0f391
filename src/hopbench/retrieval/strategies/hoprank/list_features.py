"""Tree features of a candidate among the others of its list: its standing, and how it fits those above it.

Most are shares, ranks or distances within one question, which mean the same in every corpus. Nothing here is about the
question alone: such features told data sets apart, not passages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE
from hopbench.retrieval.strategies.hoprank.list_facts import TOP, ListFacts, Reading
from hopbench.retrieval.strategies.hoprank.words import Floats

Feature = Callable[[ListFacts], Floats]


def once(feature: Feature) -> Feature:
    """Cache a feature in the facts, as other features need it too."""

    @wraps(feature)
    def kept(facts: ListFacts) -> Floats:
        if (name := feature.__name__) not in facts.known:
            facts.known[name] = feature(facts)
        return facts.known[name]

    return kept


def in_any_order(feature: Callable[[Reading], Floats]) -> Feature:
    """Cache a feature that does not depend on the order of candidates for all that were read."""

    @wraps(feature)
    def kept(facts: ListFacts) -> Floats:
        known = facts.reading.known
        if (name := feature.__name__) not in known:
            known[name] = feature(facts.reading)
        return known[name][facts.places]

    return once(kept)


def rank_of(values: Floats) -> Floats:
    """Rank each value within its list from 0, equal ones in their order."""
    order, ranks = (-values).argsort(axis=-1, kind="stable"), np.empty(values.shape)
    np.put_along_axis(ranks, order, np.arange(values.shape[-1], dtype=np.float64), axis=-1)
    return ranks


def behind(values: Floats) -> Floats:
    """Subtract the best value of each list."""
    return np.asarray(values - values.max(axis=-1, keepdims=True))


def lead_over(facts: ListFacts, rank: int) -> Floats:
    """Subtract the linear score at a rank from 0, or the last one."""
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


TELLING_EDGE = 0.1


def best_anchor(facts: ListFacts) -> Floats:
    """P(anchor) of the best path into it."""
    return facts.best_anchor


def best_edge(facts: ListFacts) -> Floats:
    """P(edge) of the best path into it."""
    return facts.best_edge


def edges_in(facts: ListFacts) -> Floats:
    """How many candidates have an edge to it."""
    return np.asarray((facts.edge[..., : facts.read] > 0).sum(axis=-2), np.float64)


def is_anchor(facts: ListFacts) -> Floats:
    """1 for an anchor of the last pass that leads to another candidate."""
    return facts.anchor.astype(np.float64)


def edge_from_above(facts: ListFacts) -> Floats:
    """P(edge) of the best edge to it from one that stands above."""
    read = facts.read
    from_above = facts.edge[..., :read, :read] * facts.above[:read, :read].T
    return np.asarray(from_above.max(axis=-2, initial=0.0))


def linked_above(facts: ListFacts) -> Floats:
    """How many of the first four, standing above it, have an edge to it with P(edge) > .1."""
    read = facts.read
    first = facts.edge[..., :TOP, :read] * facts.above[:read, :TOP].T
    return np.asarray((first > TELLING_EDGE).sum(axis=-2), np.float64)


def edge_from_best(facts: ListFacts) -> Floats:
    """P(edge) of the best edge to it from one of the first two."""
    return np.asarray(facts.edge[..., :2, : facts.read].max(axis=-2, initial=0.0))


def leads_to_best(facts: ListFacts) -> Floats:
    """P(edge) of its best edge to one of the first four."""
    return np.asarray(facts.edge[..., : facts.read, :TOP].max(axis=-1, initial=0.0))


def leads_on(facts: ListFacts) -> Floats:
    """The largest P(edge) · σ(score − fifth best score) of those that it leads to."""
    return np.asarray((facts.edge[..., : facts.read, :] * facts.sure[..., None, :]).max(axis=-1, initial=0.0))


def adds_open(facts: ListFacts) -> Floats:
    """idf share of the open question words in it that none of the first four has, as far as they stand above it."""
    return facts.open_share(facts.new_words)


def adds(facts: ListFacts) -> Floats:
    """The same of all question words."""
    return facts.share(facts.new_words)


def same_title_above(facts: ListFacts) -> Floats:
    """1 where a candidate above it is titled by the same entity."""
    read = facts.read
    own = facts.own[..., None, :read]
    same = (own == facts.own[..., :read, None]) & (own != NOWHERE)
    return np.asarray((same & facts.above[:read, :read]).any(axis=-1), np.float64)


def cosine(facts: ListFacts) -> Floats:
    """Cosine of it and the question."""
    return facts.cosine


def like_best(facts: ListFacts) -> Floats:
    """The larger cosine of it and the first two, itself aside."""
    alike = facts.alike[..., :2]
    others = 1.0 - np.eye(*alike.shape[-2:])
    return np.asarray((alike * others).max(axis=-1))


@in_any_order
def length(reading: Reading) -> Floats:
    """Its words / the mean of the corpus's chunks, at most 4."""
    corpus, words = reading.corpus, reading.corpus.words
    mean = max(len(words.numbers), 1) / max(corpus.chunks, 1)
    return np.asarray(np.minimum(words.lengths(reading.chunks) / mean, 4.0))


LIST_FEATURES: tuple[Feature, ...] = (
    *STANDING,
    best_anchor,
    best_edge,
    edges_in,
    is_anchor,
    edge_from_above,
    linked_above,
    edge_from_best,
    leads_to_best,
    leads_on,
    adds_open,
    adds,
    same_title_above,
    cosine,
    like_best,
    length,
)

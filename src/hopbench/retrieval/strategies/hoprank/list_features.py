"""What trees see of a candidate: its own evidence, its standing among the others, and how it fits those above it.

Most are shares, ranks or distances within one question, which mean the same in every corpus. Nothing here is about the
question alone: such features told apart data sets, not passages.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hopbench.retrieval.strategies.hoprank.base_features import BASE_FEATURES
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.features import Feature, in_any_order
from hopbench.retrieval.strategies.hoprank.list_facts import PATHS, TOP, ListFacts
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.pair_features import PAIR_FEATURES
from hopbench.retrieval.strategies.hoprank.reading import Reading
from hopbench.retrieval.strategies.hoprank.standing import STANDING
from hopbench.retrieval.strategies.hoprank.trees import FEATURE_DECIMALS
from hopbench.retrieval.strategies.hoprank.word_link_features import WORD_LINK_FEATURES
from hopbench.retrieval.strategies.hoprank.words import Floats

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


@cache
def tree_names() -> tuple[str, ...]:
    """The features of trees: of the chunk, of paths, of the list, and of the best edge (`best_…`)."""
    return (
        *(feature.__name__ for feature in BASE_FEATURES),
        *PATHS,
        *(feature.__name__ for feature in (*LIST_FEATURES, *PAIR_FEATURES, *WORD_LINK_FEATURES)),
        *(f"best_{feature.__name__}" for feature in EDGE_FEATURES),
    )


def tree_features(facts: ListFacts) -> Floats:
    """The features of those that are read, (n, r, f), on a grid of decimals: no last bit decides at a threshold.

    Of one list without their axis, (r, f).
    """
    read = facts.read
    features = (*LIST_FEATURES, *PAIR_FEATURES, *WORD_LINK_FEATURES)
    listed = np.stack([feature(facts)[..., :read] for feature in features], axis=-1)
    parts = facts.base[..., :read, :], facts.paths[..., :read, :], listed, facts.best[..., :read, :]
    return np.concatenate(parts, axis=-1).round(FEATURE_DECIMALS)

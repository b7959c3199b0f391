"""What trees see of a candidate: its own evidence, its standing among the others, and how it fits those above it.

Most are shares, ranks or distances within one question, which mean the same in every corpus. Nothing here is about the
question alone: such features told apart data sets, not passages.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.strategies.hoprank.base_features import BASE_FEATURES
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.features import Feature, in_any_order
from hopbench.retrieval.strategies.hoprank.list_facts import PATHS, TOP, ListFacts
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.pair_features import PAIR_FEATURES
from hopbench.retrieval.strategies.hoprank.standing import STANDING
from hopbench.retrieval.strategies.hoprank.trees import FEATURE_DECIMALS
from hopbench.retrieval.strategies.hoprank.word_link_features import WORD_LINK_FEATURES
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, columns

TELLING_EDGE = 0.1


def best_anchor(facts: ListFacts) -> Floats:
    """P(anchor) of the best path into it."""
    return facts.best_anchor


def best_edge(facts: ListFacts) -> Floats:
    """P(edge) of the best path into it."""
    return facts.best_edge


def edges_in(facts: ListFacts) -> Floats:
    """How many candidates have an edge to it."""
    return np.asarray((facts.edge[:, : facts.read] > 0).sum(axis=0), np.float64)


def is_anchor(facts: ListFacts) -> Floats:
    """1 for an anchor of the last pass that leads to another candidate."""
    return facts.anchor.astype(np.float64)


def edge_from_above(facts: ListFacts) -> Floats:
    """P(edge) of the best edge to it from one that stands above."""
    read = facts.read
    return np.asarray(np.max(facts.edge[:read, :read].T * facts.above[:read, :read], axis=1, initial=0.0))


def linked_above(facts: ListFacts) -> Floats:
    """How many of the first four, standing above it, have an edge to it with P(edge) > .1."""
    first = facts.edge.T[: facts.read, :TOP]
    return np.asarray((first * facts.top_above > TELLING_EDGE).sum(axis=1), np.float64)


def edge_from_best(facts: ListFacts) -> Floats:
    """P(edge) of the best edge to it from one of the first two."""
    return np.asarray(np.max(facts.edge.T[: facts.read, :2], axis=1, initial=0.0))


def leads_to_best(facts: ListFacts) -> Floats:
    """P(edge) of its best edge to one of the first four."""
    return np.asarray(np.max(facts.edge[: facts.read, :TOP], axis=1, initial=0.0))


def leads_on(facts: ListFacts) -> Floats:
    """The largest P(edge) · σ(score − fifth best score) of those that it leads to."""
    return np.asarray(np.max(facts.edge[: facts.read] * facts.sure, axis=1, initial=0.0))


def adds_open(facts: ListFacts) -> Floats:
    """idf share of the open question words in it that none of the first four has, as far as they stand above it."""
    return facts.candidates.question.open_share(_new_words(facts))


def adds(facts: ListFacts) -> Floats:
    """The same of all question words."""
    return facts.candidates.question.share(_new_words(facts))


def _new_words(facts: ListFacts) -> Flags:
    covers = facts.covers[: facts.read]
    first = covers[:TOP]
    known = (facts.top_above[:, : len(first), None] & first).any(axis=1)
    return np.asarray(covers & ~known)


def same_title_above(facts: ListFacts) -> Floats:
    """1 where a candidate above it is titled by the same entity."""
    read = facts.read
    own = facts.candidates.corpus.mentions.own[facts.chunks[:read]]
    same = (own[:, None] == own) & (own != NOWHERE)
    return np.asarray((same & facts.above[:read, :read]).any(axis=1), np.float64)


@in_any_order
def cosine(facts: ListFacts) -> Floats:
    """Cosine of it and the question."""
    return cosines(facts.candidates.corpus.vectors, facts.chunks[: facts.read], facts.candidates.vector)


def like_best(facts: ListFacts) -> Floats:
    """The larger cosine of it and the first two, itself aside."""
    vectors, chunks = facts.candidates.corpus.vectors, facts.chunks[: facts.read]
    alike = columns([cosines(vectors, chunks, vectors[chunk]) for chunk in chunks[:2]])
    alike[np.arange(alike.shape[1]), np.arange(alike.shape[1])] = 0.0
    return np.asarray(alike.max(axis=1))


@in_any_order
def length(facts: ListFacts) -> Floats:
    """Its words / the mean of the corpus's chunks, at most 4."""
    corpus, chunks = facts.candidates.corpus, facts.chunks[: facts.read]
    words = corpus.words
    begin, end = (words.sentence_start[words.chunk_start[each]] for each in (chunks, chunks + 1))
    mean = max(len(words.numbers), 1) / max(corpus.chunks, 1)
    return np.asarray(np.minimum((end - begin) / mean, 4.0))


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
    """The features of those that are read, (r, f), on a grid of decimals: no last bit decides at a threshold."""
    read = facts.read
    listed = columns([feature(facts)[:read] for feature in (*LIST_FEATURES, *PAIR_FEATURES, *WORD_LINK_FEATURES)])
    parts = facts.base[:read], facts.paths[:read], listed, facts.best[:read]
    return np.concatenate(parts, axis=1).round(FEATURE_DECIMALS)

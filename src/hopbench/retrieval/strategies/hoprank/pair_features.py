"""What trees see of a candidate in meaning, and with the best of its partners."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.strategies.hoprank.features import Feature, in_any_order
from hopbench.retrieval.strategies.hoprank.list_facts import TOP, ListFacts
from hopbench.retrieval.strategies.hoprank.reading import Reading
from hopbench.retrieval.strategies.hoprank.standing import behind, rank_of
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats


def close_adds(facts: ListFacts) -> Floats:
    """idf share by which it comes closer to the question's words than the first four, as far as they stand above it."""
    close = facts.close
    known = np.maximum.accumulate(close[..., :TOP, :], axis=-2)
    above = np.minimum(np.arange(facts.read), known.shape[-2])  # how many of these
    before = np.concatenate([np.zeros_like(known[..., :1, :]), known], axis=-2)[..., above, :]
    return facts.share(np.maximum(close - before, 0.0))


def close_gain(facts: ListFacts) -> Floats:
    """idf share by which it comes closer to the open words than the first one."""
    close = facts.close
    return facts.open_share(np.maximum(close - close[..., :1, :], 0.0))


def close_open(facts: ListFacts) -> Floats:
    """How close it comes to the open words, by their idf shares, minus the best."""
    return behind(facts.pairs.open_own)


@in_any_order
def close_sentence(reading: Reading) -> Floats:
    """How close its best sentence comes to the open words, by their idf shares."""
    words = reading.words
    return words.best(reading.questions.open_share(reading.closeness.sentence, words.of_sentence))


@in_any_order
def sentence_dense(reading: Reading) -> Floats:
    """Cosine of its best sentence and the question, words weighed by idf."""
    return reading.words.best(reading.closeness.dense)


@in_any_order
def sentence_dense_open(reading: Reading) -> Floats:
    """The same with the open words only."""
    return reading.words.best(reading.closeness.dense_open)


def sentence_dense_rank(facts: ListFacts) -> Floats:
    """Its rank by `sentence_dense`."""
    return rank_of(sentence_dense(facts))


def _best_or_own(facts: ListFacts, where: Flags) -> Floats:
    pairs = facts.pairs
    return behind(np.maximum(pairs.best(pairs.together, where), pairs.own))


def pair_any(facts: ListFacts) -> Floats:
    """How close it and any of the first twenty come together, by idf shares, minus the best such pair."""
    return _best_or_own(facts, facts.pairs.others)


def pair_any_sure(facts: ListFacts) -> Floats:
    """The same with σ(score − fifth best score) of the partner as factor."""
    return behind(facts.pairs.best(facts.pairs.together * facts.partners_sure, facts.pairs.others))


def pair_edge(facts: ListFacts) -> Floats:
    """`pair_any` with partners between whom and it there is an edge with P(edge) > .05, or alone."""
    return _best_or_own(facts, facts.pairs.linked)


def pair_edge_sure(facts: ListFacts) -> Floats:
    """`pair_any_sure` with such partners."""
    return behind(facts.pairs.best(facts.pairs.together * facts.partners_sure, facts.pairs.linked))


def pair_edge_gain(facts: ListFacts) -> Floats:
    """P(edge) · what such a partner adds to how close it comes alone, the best."""
    pairs = facts.pairs
    return pairs.best((pairs.together - pairs.own[..., None]) * pairs.edge, pairs.linked)


def pair_edge_adds(facts: ListFacts) -> Floats:
    """What it adds to how close such a partner comes alone, the best; -1 without partner."""
    return _adds(facts, facts.pairs.linked)


def pair_title(facts: ListFacts) -> Floats:
    """`pair_any` with partners of which one mentions the other's title, or alone."""
    return _best_or_own(facts, facts.pairs.titled)


def pair_title_open(facts: ListFacts) -> Floats:
    """The same for the open words."""
    pairs = facts.pairs
    return behind(np.maximum(pairs.best(pairs.open_together, pairs.titled), pairs.open_own))


def pair_title_adds(facts: ListFacts) -> Floats:
    """What it adds to how close such a partner comes alone, the best; -1 without partner."""
    return _adds(facts, facts.pairs.titled)


def pair_title_sentences(facts: ListFacts) -> Floats:
    """`pair_any_sure` with such partners, of the title and best sentence of both."""
    return behind(facts.pairs.best(facts.pairs.of_sentences * facts.partners_sure, facts.pairs.titled))


def pair_linked(facts: ListFacts) -> Floats:
    """`pair_any` with partners linked either way, or alone."""
    return _best_or_own(facts, facts.pairs.linked | facts.pairs.titled)


def pair_linked_sure(facts: ListFacts) -> Floats:
    """`pair_any_sure` with partners linked either way, but minus the value of the first one."""
    values = facts.pairs.best(facts.pairs.together * facts.partners_sure, facts.pairs.linked | facts.pairs.titled)
    return np.asarray(values - values[..., :1])


def pair_linked_sentences(facts: ListFacts) -> Floats:
    """`pair_any_sure` with partners linked either way, of the title and best sentence of both."""
    values = facts.pairs.of_sentences * facts.partners_sure
    return behind(facts.pairs.best(values, facts.pairs.linked | facts.pairs.titled))


def titles_linked(facts: ListFacts) -> Floats:
    """How many of the first twenty mention its title or are titled by what it mentions."""
    return np.asarray(facts.pairs.titled.sum(axis=-1), np.float64)


def _adds(facts: ListFacts, where: Flags) -> Floats:
    pairs = facts.pairs
    alone = pairs.own[..., None, : pairs.others.shape[-1]]
    return np.asarray(np.max(np.where(where, pairs.together - alone, -1.0), axis=-1, initial=-1.0))


PAIR_FEATURES: tuple[Feature, ...] = (
    close_adds,
    close_gain,
    close_open,
    close_sentence,
    sentence_dense,
    sentence_dense_open,
    sentence_dense_rank,
    pair_any,
    pair_any_sure,
    pair_edge,
    pair_edge_sure,
    pair_edge_gain,
    pair_edge_adds,
    pair_title,
    pair_title_open,
    pair_title_adds,
    pair_title_sentences,
    pair_linked,
    pair_linked_sure,
    pair_linked_sentences,
    titles_linked,
)

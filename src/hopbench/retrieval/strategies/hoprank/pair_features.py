"""Tree features of candidates two by two, by their links with the first ones of the list; and all features of trees."""

from __future__ import annotations

from functools import cache

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.list_facts import PATHS, TOP, ListFacts, Reading
from hopbench.retrieval.strategies.hoprank.list_features import (
    LIST_FEATURES,
    Feature,
    behind,
    in_any_order,
    once,
    rank_of,
)
from hopbench.retrieval.strategies.hoprank.trees import FEATURE_DECIMALS
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
    """`pair_edge_adds` with such partners."""
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
    """`pair_title_sentences` with partners linked either way."""
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


def _best(values: Floats) -> Floats:
    return np.asarray(np.maximum.reduce(values, axis=-1, initial=0.0))


def title_in(facts: ListFacts) -> Floats:
    """idf share of its title that stands in one of the first twenty, the best."""
    return _best(facts.word_links.title)


def title_in_sure(facts: ListFacts) -> Floats:
    """The same with σ(score − fifth best score) of that partner as factor."""
    return _best(facts.word_links.title * facts.partners_sure)


def title_in_best(facts: ListFacts) -> Floats:
    """idf share of its title that stands in the first one."""
    return np.asarray(facts.word_links.title[..., 0])


@once
def title_new(facts: ListFacts) -> Floats:
    """Σ idf of its title's words that a partner has and the question lacks / ln(n + 1), times its σ, the best."""
    return _best(facts.word_links.new * facts.partners_sure)


def title_new_behind(facts: ListFacts) -> Floats:
    """`title_new` minus the best candidate's."""
    return behind(title_new(facts))


@once
def title_explained(facts: ListFacts) -> Floats:
    """idf share of its title that stands in a partner or in the question, times the partner's σ, the best."""
    return _best(facts.word_links.explained * facts.partners_sure)


def title_explained_behind(facts: ListFacts) -> Floats:
    """`title_explained` minus the best candidate's."""
    return behind(title_explained(facts))


def title_gain(facts: ListFacts) -> Floats:
    """`title_explained` beyond what stands in the question."""
    links = facts.word_links
    return _best((links.explained - links.asked[..., None]) * facts.partners_sure)


@once
def title_together(facts: ListFacts) -> Floats:
    """`title_explained`, times how close both come to the question together, the best."""
    return _best(facts.word_links.explained * facts.pairs.together * facts.partners_sure)


def title_together_behind(facts: ListFacts) -> Floats:
    """`title_together` minus the best candidate's."""
    return behind(title_together(facts))


def holds_title(facts: ListFacts) -> Floats:
    """idf share of a partner's title that stands in it, the best."""
    return _best(facts.word_links.holds)


@once
def holds_title_sure(facts: ListFacts) -> Floats:
    """The same with the partner's σ as factor."""
    return _best(facts.word_links.holds * facts.partners_sure)


def holds_title_behind(facts: ListFacts) -> Floats:
    """`holds_title_sure` minus the best candidate's."""
    return behind(holds_title_sure(facts))


def _sure(facts: ListFacts) -> Floats:
    """σ of the partner that tells it, 0 of others, times how close its sentence comes to the question, (c,)."""
    links = facts.sentence_links
    return np.asarray(links.told * facts.sure_partners[links.told_by])


def title_told(facts: ListFacts) -> Floats:
    """idf share of its title in a partner's sentence, times how close that comes to the question, times σ, the best."""
    links = facts.sentence_links
    return facts.best_link(links.titled, links.title * _sure(facts))


def title_told_best(facts: ListFacts) -> Floats:
    """The same of the first one's sentences, without σ."""
    links = facts.sentence_links
    return facts.best_link(links.titled, links.title * (links.told * facts.first[links.told_by]))


@once
def title_new_told(facts: ListFacts) -> Floats:
    """`title_new` of a partner's sentence, times how close that comes to the question, the best."""
    links = facts.sentence_links
    return facts.best_link(links.titled, links.new * _sure(facts))


def title_new_told_behind(facts: ListFacts) -> Floats:
    """`title_new_told` minus the best candidate's."""
    return behind(title_new_told(facts))


@once
def title_told_together(facts: ListFacts) -> Floats:
    """idf share of its title in a partner's sentence, times how close both come to the question together, times σ."""
    links = facts.sentence_links
    return facts.best_link(links.titled, links.title * links.together * facts.sure_partners[links.told_by])


def title_told_together_behind(facts: ListFacts) -> Floats:
    """`title_told_together` minus the best candidate's."""
    return behind(title_told_together(facts))


def holds_title_told(facts: ListFacts) -> Floats:
    """idf share of a partner's title in one of its sentences, times how close that comes to the question, the best."""
    links = facts.sentence_links
    return facts.best_link(links.told_by, links.title * links.told * facts.partners[links.titled])


def holds_title_told_sure(facts: ListFacts) -> Floats:
    """The same with the partner's σ as factor."""
    links = facts.sentence_links
    return facts.best_link(links.told_by, links.title * links.told * facts.sure_partners[links.titled])


def rare_words(facts: ListFacts) -> Floats:
    """Σ 1/√(df − 1) of the words, of 2 to 30 chunks and not the question's, that it shares with a partner, the best."""
    return _best(facts.word_links.rare)


@once
def rare_words_sure(facts: ListFacts) -> Floats:
    """The same with the partner's σ as factor."""
    return _best(facts.word_links.rare * facts.partners_sure)


def rare_words_behind(facts: ListFacts) -> Floats:
    """`rare_words_sure` minus the best candidate's."""
    return behind(rare_words_sure(facts))


def rare_words_best(facts: ListFacts) -> Floats:
    """The same sum with the first one, without σ."""
    return np.asarray(facts.word_links.rare[..., 0])


@once
def chain(facts: ListFacts) -> Floats:
    """How close it and two partners come to the question together, times the links to the one and on to the other."""
    return facts.chains.onward


def chain_behind(facts: ListFacts) -> Floats:
    """`chain` minus the best candidate's."""
    return behind(chain(facts))


@once
def chain_sure(facts: ListFacts) -> Floats:
    """How close all three come together, times the better of its links to the two, and the σ of both, the best."""
    return facts.chains.sure


def chain_sure_behind(facts: ListFacts) -> Floats:
    """`chain_sure` minus the best candidate's."""
    return behind(chain_sure(facts))


WORD_LINK_FEATURES: tuple[Feature, ...] = (
    title_in,
    title_in_sure,
    title_in_best,
    title_new,
    title_new_behind,
    title_explained,
    title_explained_behind,
    title_gain,
    title_together,
    title_together_behind,
    holds_title,
    holds_title_sure,
    holds_title_behind,
    title_told,
    title_told_best,
    title_new_told,
    title_new_told_behind,
    title_told_together,
    title_told_together_behind,
    holds_title_told,
    holds_title_told_sure,
    rare_words,
    rare_words_sure,
    rare_words_behind,
    rare_words_best,
    chain,
    chain_behind,
    chain_sure,
    chain_sure_behind,
)


@cache
def tree_names() -> tuple[str, ...]:
    """List the features of trees: of the chunk, of paths, of the list, and of the best edge (`best_…`)."""
    return (
        *(feature.__name__ for feature in BASE_FEATURES),
        *PATHS,
        *(feature.__name__ for feature in (*LIST_FEATURES, *PAIR_FEATURES, *WORD_LINK_FEATURES)),
        *(f"best_{feature.__name__}" for feature in EDGE_FEATURES),
    )


def tree_features(facts: ListFacts) -> Floats:
    """Compute the features of read candidates, (n, r, f), rounded: no last bit decides at a threshold."""
    read = facts.read
    features = (*LIST_FEATURES, *PAIR_FEATURES, *WORD_LINK_FEATURES)
    listed = np.stack([feature(facts)[..., :read] for feature in features], axis=-1)
    parts = facts.base[..., :read, :], facts.paths[..., :read, :], listed, facts.best[..., :read, :]
    return np.concatenate(parts, axis=-1).round(FEATURE_DECIMALS)

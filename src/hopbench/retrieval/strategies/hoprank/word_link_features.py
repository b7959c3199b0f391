"""What trees see of a candidate's links by words with the best of the others."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.strategies.hoprank.features import Feature, once
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.standing import behind
from hopbench.retrieval.strategies.hoprank.words import Floats


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

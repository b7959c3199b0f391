"""Features of a list of candidates: functions of its facts, some of which are computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.words import Floats

Feature = Callable[[ListFacts], Floats]


def once(feature: Feature) -> Feature:
    """A feature that is computed once for a list, however many others need it."""
    return _kept(feature, lambda facts: facts.known)


def in_any_order(feature: Feature) -> Feature:
    """A feature that says the same of a candidate in any order: it is computed once for all."""
    return _kept(feature, lambda facts: facts.in_any_order)


def _kept(feature: Feature, where: Callable[[ListFacts], dict[str, Floats]]) -> Feature:
    @wraps(feature)
    def kept(facts: ListFacts) -> Floats:
        values = where(facts)
        if (name := feature.__name__) not in values:
            values[name] = feature(facts)
        return values[name]

    return kept

"""Features of listed candidates: functions of the facts about lists side by side, or about one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.reading import Reading
from hopbench.retrieval.strategies.hoprank.words import Floats

Feature = Callable[[ListFacts], Floats]


def once(feature: Feature) -> Feature:
    """A feature that is computed once for the same facts, however many others need it."""

    @wraps(feature)
    def kept(facts: ListFacts) -> Floats:
        if (name := feature.__name__) not in facts.known:
            facts.known[name] = feature(facts)
        return facts.known[name]

    return kept


def in_any_order(feature: Callable[[Reading], Floats]) -> Feature:
    """A feature that says the same of a candidate in any order: it is computed once for all that were read."""

    @wraps(feature)
    def kept(facts: ListFacts) -> Floats:
        known = facts.reading.known
        if (name := feature.__name__) not in known:
            known[name] = feature(facts.reading)
        return known[name][facts.places]

    return once(kept)

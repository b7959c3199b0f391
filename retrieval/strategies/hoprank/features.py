"""Features of listed candidates: functions of the facts about one list, or about several side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.reading import Reading
from hopbench.retrieval.strategies.hoprank.side_by_side import SideBySide
from hopbench.retrieval.strategies.hoprank.words import Floats

Facts = ListFacts | SideBySide
Feature = Callable[[Facts], Floats]
OfOne = Callable[[ListFacts], Floats]


def once(feature: Feature) -> Feature:
    """A feature that is computed once for the same facts, however many others need it."""

    @wraps(feature)
    def kept(facts: Facts) -> Floats:
        if (name := feature.__name__) not in facts.known:
            facts.known[name] = feature(facts)
        return facts.known[name]

    return kept


def of_each(feature: OfOne) -> Feature:
    """A feature of what differs in size from list to list, such as words: computed for one list after the other."""

    @wraps(feature)
    def computed(facts: Facts) -> Floats:
        return feature(facts) if isinstance(facts, ListFacts) else np.stack([*map(feature, facts.lists)])

    return computed


def in_any_order(feature: Callable[[Reading], Floats]) -> Feature:
    """A feature that says the same of a candidate in any order: it is computed once for all that were read."""

    @wraps(feature)
    def kept(facts: ListFacts) -> Floats:
        known = facts.reading.known
        if (name := feature.__name__) not in known:
            known[name] = feature(facts.reading)
        return known[name][facts.places]

    return once(of_each(kept))

"""A strategy with one parameter changed: which single limit keeps a passage out of its ranking.

Nothing is inferred from a parameter's name. Each numeric parameter is set to its lower and to its upper bound, each
switch is flipped, each choice tried, and the strategy is run again; what then ranks the passage is named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.explain.answer import Answer, Placed, answer
from retrieval.errors import InputError
from retrieval.index import Batch
from retrieval.strategies.base import Bounds, Strategy

TIERS = (10, 20)
NOT_A_LIMIT = "fill"  # it completes rankings, which makes nothing a candidate


@dataclass(frozen=True, slots=True)
class Change:
    """One parameter of a strategy with another value."""

    parameter: str
    before: object
    after: object

    def __str__(self) -> str:
        """`max_depth 1 → 3`."""
        return f"{self.parameter} {_shown(self.before)} → {_shown(self.after)}"


@dataclass(frozen=True, slots=True)
class Helped:
    """A change, and where the passage in question stands with it."""

    change: Change
    place: Placed

    @property
    def tier(self) -> int:
        """0 for the top 10, 1 for the top 20, 2 below."""
        return sum(self.place.rank > rank for rank in TIERS)


def changes_of(strategy: Strategy) -> Iterator[Change]:
    """Every single change to a bound, in the order in which the parameters are defined."""
    for name, spec in strategy.parameters().items():
        if name == NOT_A_LIMIT:
            continue
        before = getattr(strategy, name)
        for after in _others(before, spec):
            yield Change(name, before, after)


def _others(before: object, spec: dataclasses.Field[object]) -> list[object]:
    bounds: Bounds = spec.metadata["bounds"]
    if isinstance(before, bool):
        return [not before]
    if bounds.choices:
        return [choice for choice in bounds.choices if choice != before]
    if bounds.low is None or bounds.high is None:
        return []
    ends = dict.fromkeys((bounds.low, bounds.high))
    if isinstance(spec.default, int):
        ends = dict.fromkeys((int(bounds.low), int(bounds.high)))
    return [end for end in ends if end != before]


def answers_after(base: Answer, batch: Batch) -> list[tuple[Change, Answer]]:
    """The question answered anew under every change that the strategy and the graph accept."""
    found = []
    for change in changes_of(base.strategy):
        try:
            changed = type(base.strategy)(**{**base.strategy.spec(), change.parameter: change.after})
            found.append((change, answer(base.label, changed, batch)))
        except InputError:  # refused beside the other parameters, or below what the graph was built with
            continue
    return found


def helpful(passage: str, outcomes: Sequence[tuple[Change, Answer]], within: int | None = None) -> tuple[Helped, ...]:
    """The changes under which the strategy itself ranks `passage` (in its top `within`), one a parameter.

    Those that bring it into the top 10 come first, then the top 20, then the others; in the order of definition.
    """
    best: dict[str, Helped] = {}
    for change, outcome in outcomes:
        place = outcome.place(passage)
        if place is None or not place.candidate or (within is not None and place.rank > within):
            continue
        helped, known = Helped(change, place), best.get(change.parameter)
        if known is None or place.rank < known.place.rank:
            best[change.parameter] = helped
    return tuple(sorted(best.values(), key=lambda helped: helped.tier))  # stable: the order of definition within a tier


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)

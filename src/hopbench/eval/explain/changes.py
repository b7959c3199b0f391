"""A strategy with one parameter changed: which single limit keeps a passage out of its ranking.

Nothing is inferred from a parameter's name. Each numeric parameter is set to its lower and to its upper bound, each
switch is flipped, each choice tried, and the strategy is run again; what then ranks the passage is named. A limit is a
parameter whose change only adds candidates; any other change also loses candidates, and their number is reported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hopbench.eval.explain.answer import RankedPassage, places
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Counters

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
class Outcome:
    """All candidates under a change, however many; `lost` is how many of the candidates without it are missing.

    `failure` is the reason why the strategy could not be run so.
    """

    change: Change
    places: Mapping[str, RankedPassage] = field(default_factory=dict)
    lost: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class HelpfulChange:
    """A change that makes a passage a candidate, the passage's rank then, and how many other candidates it loses."""

    change: Change
    place: RankedPassage
    lost: int = 0

    @property
    def order(self) -> tuple[bool, int]:
        """Limits first; those that bring it into the top 10, then the top 20, then the others."""
        return self.lost > 0, sum(self.place.rank > rank for rank in TIERS)


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


def outcomes_of(strategy: Strategy, batch: Batch) -> list[Outcome]:
    """The batch's one question under every change that the strategy and the graph accept."""
    before = _candidates(strategy, batch)
    outcomes = []
    for change in changes_of(strategy):
        try:
            changed = type(strategy)(**{**strategy.spec(), change.parameter: change.after})
            after = _candidates(changed, batch)
        except InputError:  # refused beside the other parameters, or below what the graph was built with
            continue
        except Exception as error:  # whatever a strategy raises is this change's outcome; the others are still tried
            outcomes.append(Outcome(change, failure=f"{type(error).__name__}: {error}"))
            continue
        outcomes.append(Outcome(change, after, len(before.keys() - after.keys())))
    return outcomes


def _candidates(strategy: Strategy, batch: Batch) -> dict[str, RankedPassage]:
    """What a strategy itself ranks: not completed, not cut to the length that rankings have."""
    (ranking,) = strategy.search(batch, Counters())
    if ranking.failure is not None:
        raise ValueError(ranking.failure)
    return {place.passage: place for place in places(ranking.hits, batch.index)}


def helpful(passage: str, outcomes: Sequence[Outcome], within: int | None = None) -> tuple[HelpfulChange, ...]:
    """The changes that make `passage` a candidate (in the top `within`), the best of each parameter.

    In the order of `HelpfulChange.order`, then of definition.
    """
    best: dict[str, HelpfulChange] = {}
    for outcome in outcomes:
        place = outcome.places.get(passage)
        if place is None or (within is not None and place.rank > within):
            continue
        helped, known = HelpfulChange(outcome.change, place, outcome.lost), best.get(outcome.change.parameter)
        if known is None or (*helped.order, place.rank) < (*known.order, known.place.rank):
            best[outcome.change.parameter] = helped
    return tuple(sorted(best.values(), key=lambda helped: helped.order))  # stable


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)

"""Trials split into units, a label × a batch of questions, which workers do in any order; and merged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopbench.eval.trials.trial import TrialOutcome, prepare, run_trial

if TYPE_CHECKING:
    from hopbench.retrieval.context import Budget
    from hopbench.retrieval.index import Batch
    from hopbench.retrieval.strategies.base import Strategy


@dataclass(frozen=True, order=True)
class Unit:
    """The work of one worker at a time: batch number `part` of a label's questions."""

    part: int
    label: str

    @property
    def title(self) -> str:
        """What Prefect shows."""
        return f"trial {self.label} batch {self.part}"


@dataclass(frozen=True)
class UnitOutcome:
    """The outcome of a unit; `shared_seconds` is the time it spent on what all labels share in its batch."""

    outcome: TrialOutcome
    shared_seconds: float


def run_unit(unit: Unit, strategy: Strategy, batch: Batch, budget: Budget) -> UnitOutcome:
    """Rank one batch with one strategy."""
    known = "dense" in vars(batch) and "lexical" in vars(batch)
    shared = 0.0 if known else prepare([batch])
    return UnitOutcome(run_trial(unit.label, strategy, [batch], budget), shared)


def merged(outcomes: Sequence[UnitOutcome]) -> TrialOutcome:
    """One label's units, in the order of their batches, as one trial: the same as from a single worker."""
    first = outcomes[0].outcome
    whole = TrialOutcome(first.label, first.strategy, first.parameters)
    for part in (each.outcome for each in outcomes):
        whole.rankings.update(part.rankings)
        whole.hits.update(part.hits)
        whole.notes.update(part.notes)
        whole.counters.add(part.counters)
        whole.seconds += part.seconds
        whole.once_seconds += part.once_seconds
    return whole


def shared_seconds(outcomes: Mapping[Unit, UnitOutcome]) -> float:
    """The time for what all labels share, each batch counted once, though several workers may have computed it."""
    by_part: dict[int, float] = {}
    for unit, done in outcomes.items():
        by_part[unit.part] = max(by_part.get(unit.part, 0.0), done.shared_seconds)
    return sum(by_part.values())

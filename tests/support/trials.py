"""Trials of a plan, one after another in this process."""

from __future__ import annotations

from hopbench.eval.runs.evaluate import Plan
from hopbench.eval.trials.trial import TrialOutcome


def trials_of(plan: Plan) -> dict[str, TrialOutcome]:
    """Each label's trial: its rankings, and the latency of single calls."""
    trials = {label: plan.trial(label) for label in plan.strategies}
    for trial in trials.values():
        trial.run()
    return {label: trial.outcome for label, trial in trials.items()}

"""The night's verdict: each label against the last good night that had it, and one against the champion.

A regression is a label significantly worse on the primary metric than on the last good night (one family of
comparisons, corrected by Holm), or worse than the champion with the champion's own spec (a drift too slow to show from
night to night), or slower than `latency_factor` allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from eval.compare import Comparison, PairResult, compare, limit
from eval.metrics import PRIMARY
from flows.nightly.nights import Night, last_good
from flows.nightly.suspects import changed, circumstances

if TYPE_CHECKING:
    import pandas as pd

    from eval.evaluate import Evaluation
    from eval.ledger import TrialRecord

Outcome = Literal["baseline", "good", "regression", "incomplete"]
FASTEST_MS = 5.0
"""A label slower by less than this is not called slower, whatever the factor: below it the machine's noise rules."""


@dataclass(frozen=True)
class Slower:
    """A label whose p50 latency grew beyond the factor, on a second measuring too."""

    label: str
    then: float
    now: float


@dataclass(frozen=True)
class Drift:
    """Tonight's `label` against the benchmark's champion; `same_spec` tells whether it is the champion's own."""

    label: str
    champion: str
    same_spec: bool
    pair: PairResult


@dataclass(frozen=True)
class Verdict:
    """What a night is compared with and what came out; `changed` names what differs from then."""

    outcome: Outcome
    metric: str
    previous: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison | None = None
    drift: Drift | None = None
    slower: Sequence[Slower] = ()
    incomplete: Sequence[str] = ()
    changed: Sequence[str] = ()

    @property
    def worse(self) -> list[PairResult]:
        """The labels significantly worse than on their last good night."""
        return [] if self.comparison is None else [pair for pair in self.comparison.pairs if pair.verdict == "worse"]

    @property
    def drifted(self) -> bool:
        """Whether the champion's own spec is worse tonight than when it became champion."""
        return self.drift is not None and self.drift.same_spec and self.drift.pair.verdict == "worse"

    @property
    def regressions(self) -> list[str]:
        """The labels that make this night a regression."""
        drifted = [self.drift.label] if self.drift is not None and self.drifted else []
        return list(dict.fromkeys([*(p.label for p in self.worse), *drifted, *(s.label for s in self.slower)]))

    def accepted(self) -> Verdict:
        """The same findings, taken as the new baseline (`--accept`)."""
        return replace(self, outcome="baseline")


def judge(
    evaluation: Evaluation,
    earlier: Sequence[Night],
    champion: TrialRecord | None,
    slower: Sequence[Slower],
    incomplete: Sequence[str],
) -> Verdict:
    """Compare tonight with `earlier` nights of the same benchmark (newest first) and with its champion."""
    metric = evaluation.plan.primary or PRIMARY
    before = {label: night for label in evaluation.rows if (night := last_good(earlier, label)) is not None}
    now = circumstances(evaluation)
    suspects = [line for night in _distinct(before) for line in changed(now, night.circumstances, list(before))]
    verdict = Verdict(
        "good" if before else "baseline",
        metric,
        {label: night.name for label, night in before.items()},
        _against(evaluation, before, metric),
        None if champion is None else _drift(evaluation, champion, metric),
        tuple(slower),
        tuple(incomplete),
        tuple(dict.fromkeys(suspects)),
    )
    outcome: Outcome = "regression" if verdict.regressions else "incomplete" if incomplete else verdict.outcome
    return replace(verdict, outcome=outcome)


def _distinct(before: Mapping[str, Night]) -> list[Night]:
    return list({night.name: night for night in before.values()}.values())


def _against(evaluation: Evaluation, before: Mapping[str, Night], metric: str) -> Comparison | None:
    rows: dict[str, pd.DataFrame] = {}
    pairs = []
    for label, night in before.items():
        tonight, then = evaluation.rows[label], night.rows_of(label)
        if metric in tonight.columns and metric in then.columns:
            rows |= {label: tonight, (name := f"{label} on {night.name}"): then}
            pairs.append((label, name))
    return compare(rows, metric=metric, pairs=pairs, seed=evaluation.plan.seed) if pairs else None


def _drift(evaluation: Evaluation, champion: TrialRecord, metric: str) -> Drift | None:
    """The champion's own spec tonight; else another label of its strategy; else nothing stands for it."""
    strategy, parameters = champion.settings["strategy"], champion.settings["parameters"]
    of_strategy = [label for label, trial in evaluation.trials.items() if trial.strategy == strategy]
    same = [label for label in of_strategy if dict(evaluation.trials[label].parameters) == parameters]
    label = next(iter([*same, *of_strategy]), None)
    if label is None or metric not in champion.questions.columns or metric not in evaluation.rows[label].columns:
        return None
    name = f"the champion ({strategy})"
    rows = {label: evaluation.rows[label], name: champion.questions}
    pair = compare(rows, metric=metric, pairs=[(label, name)], seed=evaluation.plan.seed).pairs[0]
    return Drift(label, champion.trial_id, bool(same), pair)


def describe(pair: PairResult, metric: str) -> str:
    """`pagerank: all_gold@10 -0.120 [-0.180, -0.061]`, the interval that of the whole family."""
    interval = f" [{limit(pair.ci_family.low)}, {limit(pair.ci_family.high)}]" if pair.ci_family else ""
    return f"{pair.label}: {metric} {pair.difference:+.3f}{interval}"


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON values: for nightly.json, the report, MLflow and the webhook."""
    pairs = [] if verdict.comparison is None else verdict.comparison.pairs
    drift = verdict.drift
    return {
        "outcome": verdict.outcome,
        "metric": verdict.metric,
        "previous": dict(verdict.previous),
        "regressions": verdict.regressions,
        "comparisons": [_pair(pair) for pair in pairs],
        "champion": None
        if drift is None
        else {"trial": drift.champion, "same_spec": drift.same_spec, **_pair(drift.pair)},
        "slower": [{"label": s.label, "ms_then": s.then, "ms_now": s.now} for s in verdict.slower],
        "incomplete": list(verdict.incomplete),
        "changed": list(verdict.changed),
    }


def _pair(pair: PairResult) -> dict[str, Any]:
    return {
        "label": pair.label,
        "against": pair.baseline,
        "effect": pair.difference,
        "ci_low": pair.ci.low if pair.ci else None,
        "ci_high": pair.ci.high if pair.ci else None,
        "family_low": pair.ci_family.low if pair.ci_family else None,
        "family_high": pair.ci_family.high if pair.ci_family else None,
        "p_adjusted": pair.p_holm,
        "mde": pair.minimum_detectable,
        "verdict": pair.verdict,
        "n": pair.n,
        "wins": list(pair.wins),
        "losses": list(pair.losses),
    }

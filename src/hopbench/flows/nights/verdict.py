"""The night's verdict: each label against the last good night that had it, and one against the champion.

A regression is a label significantly worse on the primary metric than on the last good night (one family of
comparisons, corrected by Holm), or worse than the champion with the champion's own spec (a drift too slow to show from
night to night), or slower than `latency_factor` allows beside the yardstick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from hopbench.eval.compare import BREAKDOWN_RESAMPLES, Comparison, PairResult, compare
from hopbench.eval.metrics import PRIMARY, ragas_metrics
from hopbench.eval.statistics import RESAMPLES, limit
from hopbench.flows.nights.circumstances import changed, circumstances
from hopbench.flows.nights.history import NightlyRecord
from hopbench.flows.nights.latency import Latencies, Slower
from hopbench.flows.nights.matching import LabelMatches, nearest

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.trials.ledger import TrialRecord

Outcome = Literal["baseline", "good", "regression", "incomplete"]


@dataclass(frozen=True)
class Drift:
    """Tonight's `label` against the benchmark's champion; `same_spec`: whether it has the champion's own parameters."""

    label: str
    champion: str
    same_spec: bool
    pair: PairResult


@dataclass(frozen=True)
class Verdict:
    """What a nightly run was compared with, and the result; `changed` names what differs from then.

    `labels` are tonight's, `found` what each of them is compared with; `ragas` compares them on RAGAS's metrics too,
    which are reported without affecting the verdict. `left_out` is the champion's strategy where
    no label of it ran tonight.
    """

    outcome: Outcome
    metric: str
    labels: Sequence[str] = ()
    found: LabelMatches = field(default_factory=LabelMatches)
    comparison: Comparison | None = None
    ragas: Sequence[Comparison] = ()
    drift: Drift | None = None
    left_out: str = ""
    latency: Latencies = field(default_factory=Latencies)
    incomplete: Sequence[str] = ()
    changed: Sequence[str] = ()

    @property
    def previous(self) -> dict[str, str]:
        """The night that each label is compared with."""
        return {label: night.name for label, (night, _) in self.found.before.items()}

    @property
    def compared(self) -> list[str]:
        """The labels whose scores were compared with an earlier night's: the verdict covers only these."""
        return [] if self.comparison is None else [pair.label for pair in self.comparison.pairs]

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
        return list(dict.fromkeys([*(p.label for p in self.worse), *drifted, *(s.label for s in self.latency.slower)]))

    def accepted(self) -> Verdict:
        """The same findings, taken as the new baseline (`--accept`)."""
        return replace(self, outcome="baseline")


def judge(
    evaluation: Evaluation,
    found: LabelMatches,
    champion: TrialRecord | None,
    latency: Latencies,
    incomplete: Sequence[str],
) -> Verdict:
    """Compare tonight with what was `found` of earlier nights of the same benchmark, and with its champion."""
    metric = evaluation.plan.primary or PRIMARY
    now, replaced = circumstances(evaluation), found.replaced
    drift = None if champion is None else _drift(evaluation, champion, metric)
    verdict = Verdict(
        "good" if found.before else "baseline",
        metric,
        tuple(evaluation.rows),
        found,
        _against(evaluation, found, metric),
        _ragas(evaluation, found),
        drift,
        "" if champion is None or drift is not None else str(champion.settings["strategy"]),
        latency,
        tuple(incomplete),
        tuple(
            dict.fromkeys(
                line
                for night in _distinct(found)
                for line in changed(now, night.circumstances, list(found.before), replaced)
            )
        ),
    )
    broken = bool(incomplete) or found.vanished
    outcome: Outcome = "regression" if verdict.regressions else "incomplete" if broken else verdict.outcome
    return replace(verdict, outcome=outcome)


def _distinct(found: LabelMatches) -> list[NightlyRecord]:
    return list({night.name: night for night, _ in found.before.values()}.values())


def _against(evaluation: Evaluation, found: LabelMatches, metric: str, resamples: int = RESAMPLES) -> Comparison | None:
    rows: dict[str, pd.DataFrame] = {}
    pairs = []
    for label, (night, known_as) in found.before.items():
        tonight, then = evaluation.rows[label], night.rows_of(known_as)
        if metric in tonight.columns and metric in then.columns:
            rows |= {label: tonight, (name := f"{known_as} on {night.name}"): then}
            pairs.append((label, name))
    if not pairs:
        return None
    return compare(rows, metric=metric, pairs=pairs, seed=evaluation.plan.seed, resamples=resamples)


def _ragas(evaluation: Evaluation, found: LabelMatches) -> tuple[Comparison, ...]:
    """RAGAS's metrics tonight against the same nights, each a family of its own."""
    names = ragas_metrics(name for rows in evaluation.rows.values() for name in rows)
    return tuple(one for name in names if (one := _against(evaluation, found, name, BREAKDOWN_RESAMPLES)) is not None)


def _drift(evaluation: Evaluation, champion: TrialRecord, metric: str) -> Drift | None:
    """The champion's own spec tonight; else the nearest label of its strategy; else None."""
    strategy, parameters = champion.settings["strategy"], champion.settings["parameters"]
    specs = {label: dict(trial.parameters) for label, trial in evaluation.trials.items() if trial.strategy == strategy}
    same = [label for label, spec in specs.items() if spec == parameters]
    label = same[0] if same else nearest(strategy, parameters, specs) if specs else None
    if label is None or metric not in champion.questions.columns or metric not in evaluation.rows[label].columns:
        return None
    name = f"the champion ({strategy})"
    rows = {label: evaluation.rows[label], name: champion.questions}
    pair = compare(rows, metric=metric, pairs=[(label, name)], seed=evaluation.plan.seed).pairs[0]
    return Drift(label, champion.trial_id, bool(same), pair)


def describe(pair: PairResult, metric: str, replaced: Mapping[str, str] | None = None) -> str:
    """`pagerank[restart=0.99] in place of pagerank: all_gold@10 -0.120 [-0.180, -0.061]`.

    The interval is that of the whole family.
    """
    interval = f" [{limit(pair.ci_family.low)}, {limit(pair.ci_family.high)}]" if pair.ci_family else ""
    known_as = (replaced or {}).get(pair.label)
    place = f" in place of {known_as}" if known_as else ""
    return f"{pair.label}{place}: {metric} {pair.difference:+.3f}{interval}"


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON values: for nightly.json, the report, MLflow and the webhook."""
    pairs = [] if verdict.comparison is None else verdict.comparison.pairs
    drift = verdict.drift
    return {
        "outcome": verdict.outcome,
        "metric": verdict.metric,
        "previous": verdict.previous,
        "compared": verdict.compared,
        "replaced": verdict.found.replaced,
        "new": list(verdict.found.new),
        "missing": list(verdict.found.missing),
        "regressions": verdict.regressions,
        "comparisons": [_pair(pair) for pair in pairs],
        "ragas": {comparison.metric: [_pair(pair) for pair in comparison.pairs] for comparison in verdict.ragas},
        "champion": None
        if drift is None
        else {"trial": drift.champion, "same_spec": drift.same_spec, **_pair(drift.pair)},
        "slower": [_slower(slow) for slow in verdict.latency.slower],
        "busy": [_slower(slow) for slow in verdict.latency.busy],
        "incomplete": list(verdict.incomplete),
        "changed": list(verdict.changed),
    }


def _slower(one: Slower) -> dict[str, Any]:
    return {"label": one.label, "ms_then": one.then, "ms_now": one.now, "growth": one.growth}


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

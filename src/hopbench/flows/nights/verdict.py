"""The night's verdict: each label against the last good night that had it, and one against the champion."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from hopbench.eval.compare import BREAKDOWN_RESAMPLES, Comparison, PairResult, compare
from hopbench.eval.metrics import PRIMARY, ragas_metrics, rank_key
from hopbench.eval.statistics import RESAMPLES, limit
from hopbench.eval.trials.key import TrialKey
from hopbench.eval.trials.ledger import Champion, Ledger, TrialRecord
from hopbench.flows.nights.environment import Latencies, Slower, changed, environment_of
from hopbench.flows.nights.history import LabelMatches, nearest
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation


def champion_of(home: Home, digest: str) -> tuple[Champion, TrialRecord] | None:
    """The champion of a benchmark with its trial, if one was named and its trial is still in the ledger."""
    with Ledger.open(home.ledger) as ledger:
        champion = ledger.champion_of(digest)
        trial = ledger.get(champion.trial_id) if champion is not None else None
    return None if champion is None or trial is None else (champion, trial)


def challenger(evaluation: Evaluation, verdict: Verdict, known: TrialRecord | None) -> str | None:
    """The label that becomes champion tonight: a good night's best label, if it beats the champion or there is none."""
    best = _best(evaluation)
    if verdict.outcome not in ("baseline", "good") or best is None:
        return None
    if known is None:
        return best
    metric = evaluation.plan.primary
    if metric is None or metric not in known.questions.columns:
        return None
    rows = {best: evaluation.rows[best], "the champion": known.questions}
    pair = compare(rows, metric=metric, pairs=[(best, "the champion")], seed=evaluation.plan.seed).pairs[0]
    return best if pair.verdict == "better" else None


def crown(home: Home, evaluation: Evaluation, label: str, night: str, run_id: str) -> None:
    """Keep a label's trial in the ledger and name it the champion."""
    plan, trial = evaluation.plan, evaluation.trials[label]
    key = TrialKey.of(
        plan.strategies[label],
        plan.index,
        dataset=plan.benchmark.digest,
        questions=[question.id for question in plan.benchmark.questions],
        fingerprint=plan.record["fingerprint"],
        budget=plan.budget,
        seed=plan.seed,
        parameters=dict(trial.parameters),  # later nights look for the label with these
        night=night,  # a night's trial is its own: a sweep does not reuse it
    )
    metrics, ended = evaluation.summaries[label]["metrics"], time.time()
    rows = evaluation.rows[label]
    record = TrialRecord(key.id, key.settings, metrics, rows, trial.failures, trial.seconds, ended, ended)
    with Ledger.open(home.ledger) as ledger:
        ledger.put(record)
        ledger.set_champion(Champion(plan.benchmark.digest, record.trial_id, label, run_id, time.time()))


def _best(evaluation: Evaluation) -> str | None:
    """HopBench's best label by the primary metric that was not tuned or learned on this benchmark's questions."""
    plan, metric = evaluation.plan, evaluation.plan.primary
    if metric is None:
        return None
    scored = {}
    for label, summary in evaluation.summaries.items():
        strategy = plan.strategies.get(label)  # none answers with a closed book
        eligible = not plan.in_sample(label) and not (strategy is not None and strategy.foreign)
        if eligible and (mean := summary["metrics"].get(metric)) is not None:
            scored[label] = mean
    return min(scored, key=lambda label: (rank_key(metric, scored[label]), label), default=None)


Outcome = Literal["baseline", "good", "regression", "incomplete"]


@dataclass(frozen=True)
class Verdict:
    """What a nightly run was compared with, and the result; `changed` names what differs from then.

    `labels` are tonight's, `found` what each of them is compared with; `ragas` compares them on RAGAS's metrics too,
    which are reported without affecting the verdict. `champion` is the comparison with the benchmark's champion, the
    trial `champion_trial`, and `same_spec` whether tonight's label has the champion's own parameters; `left_out` is the
    champion's strategy where no label of it ran tonight.
    """

    outcome: Outcome
    metric: str
    labels: Sequence[str] = ()
    found: LabelMatches = field(default_factory=LabelMatches)
    comparison: Comparison | None = None
    ragas: Sequence[Comparison] = ()
    champion: PairResult | None = None
    champion_trial: str = ""
    same_spec: bool = False
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
    def fell_behind(self) -> bool:
        """Whether the champion's own spec is worse tonight than when it became champion."""
        return self.champion is not None and self.same_spec and self.champion.verdict == "worse"

    @property
    def regressions(self) -> list[str]:
        """The labels that make this night a regression."""
        behind = [self.champion.label] if self.champion is not None and self.fell_behind else []
        slower = [slow.label for slow in self.latency.slower]
        return list(dict.fromkeys([*(pair.label for pair in self.worse), *behind, *slower]))

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
    now, labels = environment_of(evaluation), list(found.before)
    pair, same_spec = (None, False) if champion is None else _against_champion(evaluation, champion, metric)
    earlier = {night.name: night for night, _ in found.before.values()}.values()
    changes = [line for night in earlier for line in changed(now, night.environment, labels, found.replaced)]
    ragas = ragas_metrics(name for rows in evaluation.rows.values() for name in rows)
    beside = (_against(evaluation, found, name, BREAKDOWN_RESAMPLES) for name in ragas)  # each a family of its own
    verdict = Verdict(
        "good" if found.before else "baseline",
        metric,
        tuple(evaluation.rows),
        found,
        _against(evaluation, found, metric),
        tuple(one for one in beside if one is not None),
        champion=pair,
        champion_trial="" if champion is None else champion.trial_id,
        same_spec=same_spec,
        left_out="" if champion is None or pair is not None else str(champion.settings["strategy"]),
        latency=latency,
        incomplete=tuple(incomplete),
        changed=tuple(dict.fromkeys(changes)),
    )
    broken = bool(incomplete) or found.vanished
    outcome: Outcome = "regression" if verdict.regressions else "incomplete" if broken else verdict.outcome
    return replace(verdict, outcome=outcome)


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


def _against_champion(evaluation: Evaluation, champion: TrialRecord, metric: str) -> tuple[PairResult | None, bool]:
    """The champion's own spec tonight, and True; else the nearest label of its strategy; else None."""
    strategy, parameters = champion.settings["strategy"], champion.settings["parameters"]
    specs = {label: dict(trial.parameters) for label, trial in evaluation.trials.items() if trial.strategy == strategy}
    same = [label for label, spec in specs.items() if spec == parameters]
    label = same[0] if same else nearest(strategy, parameters, specs) if specs else None
    if label is None or metric not in champion.questions.columns or metric not in evaluation.rows[label].columns:
        return None, False
    name = f"the champion ({strategy})"
    rows = {label: evaluation.rows[label], name: champion.questions}
    return compare(rows, metric=metric, pairs=[(label, name)], seed=evaluation.plan.seed).pairs[0], bool(same)


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
    champion, trial = verdict.champion, {"trial": verdict.champion_trial, "same_spec": verdict.same_spec}
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
        "champion": None if champion is None else {**trial, **_pair(champion)},
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

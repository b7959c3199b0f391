"""The benchmark's champion: the trial that nights are compared with, and when a night's label replaces it.

Sweeps set champions; without one, the best label of the first good night becomes champion, so that slow drift shows
from then on. A good night's best label takes its place when it is significantly better.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hopbench.eval.metrics import rank_key
from hopbench.eval.trials.key import TrialKey
from hopbench.eval.trials.ledger import Champion, Ledger, TrialRecord
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation, Plan
    from hopbench.flows.nights.verdict import Verdict


def champion_of(home: Home, digest: str) -> tuple[Champion, TrialRecord] | None:
    """The champion of a benchmark with its trial, if one was named and its trial is still in the ledger."""
    with Ledger.open(home.ledger) as ledger:
        champion = ledger.champion_of(digest)
        trial = ledger.get(champion.trial_id) if champion is not None else None
    return None if champion is None or trial is None else (champion, trial)


def night_of(trial: TrialRecord) -> str | None:
    """The nightly run that made this trial champion; None if a sweep did."""
    night = trial.settings.get("night")
    return None if night is None else str(night)


def challenger(evaluation: Evaluation, verdict: Verdict, known: TrialRecord | None) -> str | None:
    """The label that becomes champion tonight: a good night's best label, if it beats the champion or there is none."""
    best = _best(evaluation)
    if verdict.outcome not in ("baseline", "good") or best is None:
        return None
    if known is None:
        return best
    from hopbench.eval.compare import compare

    metric = evaluation.plan.primary
    if metric is None or metric not in known.questions.columns:
        return None
    rows = {best: evaluation.rows[best], "the champion": known.questions}
    pair = compare(rows, metric=metric, pairs=[(best, "the champion")], seed=evaluation.plan.seed).pairs[0]
    return best if pair.verdict == "better" else None


def crown(home: Home, evaluation: Evaluation, label: str, night: str, run_id: str) -> None:
    """Keep a label's trial in the ledger and name it the champion."""
    record = _record(evaluation, label, night)
    with Ledger.open(home.ledger) as ledger:
        ledger.put(record)
        digest = evaluation.plan.benchmark.digest
        ledger.set_champion(Champion(digest, record.trial_id, label, run_id, time.time()))


def _best(evaluation: Evaluation) -> str | None:
    """HopBench's best label by the primary metric that was not tuned or learned on this benchmark's questions."""
    metric = evaluation.plan.primary
    if metric is None:
        return None
    means = {label: summary["metrics"].get(metric) for label, summary in evaluation.summaries.items()}
    scored = {label: mean for label, mean in means.items() if mean is not None and _eligible(evaluation.plan, label)}
    return min(scored, key=lambda label: (rank_key(metric, scored[label]), label), default=None)


def _eligible(plan: Plan, label: str) -> bool:
    strategy = plan.strategies.get(label)  # none answers with a closed book
    return not (plan.in_sample(label) or (strategy is not None and strategy.foreign))


def _record(evaluation: Evaluation, label: str, night: str) -> TrialRecord:
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
    metrics = evaluation.summaries[label]["metrics"]
    ended = time.time()
    rows = evaluation.rows[label]
    return TrialRecord(key.id, key.settings, metrics, rows, trial.failures, trial.seconds, ended, ended)

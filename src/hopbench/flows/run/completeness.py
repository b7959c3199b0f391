"""Whether a run is complete: failures, missing answers and judgements, and how many are too many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hopbench.eval.metrics import all_metrics
from hopbench.eval.runs.targets import check_targets
from hopbench.eval.types import MAX_FAILED, too_many_failed
from hopbench.retrieval.support.errors import IncompleteError, TargetError

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation


@dataclass(frozen=True)
class Finished:
    """A finished run: its evaluation, its warnings, and the labels that failed too often.

    `key` names it in MLflow, `run_ids` are MLflow's own names by key, `links` the addresses of its pages there by name.
    """

    evaluation: Evaluation
    warnings: list[str]
    incomplete: list[str]
    key: str
    run_ids: Mapping[str, str]
    links: dict[str, str] = field(default_factory=dict)


def warnings_of(evaluation: Evaluation) -> list[str]:
    """A line for each label and kind of gap: failed, not answered, not judged, or not measured."""
    failed = [
        f"{label}: {trial.failures} of {len(trial.rankings)} questions failed"
        for label, trial in evaluation.trials.items()
        if trial.failures
    ]
    unanswered = [
        f"{label}: {failures} of {len(answers)} questions have no answer"
        for label, answers in evaluation.read.answers.items()
        if (failures := sum(answer.failure is not None for answer in answers.values()))
    ]
    unjudged = [f"{label}: {metric} covers {share:.1%} of the questions" for label, metric, share in _gaps(evaluation)]
    cached = [
        f"{label}: latency leaves out what its language model takes, whose replies came from the cache"
        for label, trial in evaluation.trials.items()
        if trial.counters.llm_calls and trial.latency_ms
    ]
    return failed + unanswered + unjudged + cached


def _gaps(evaluation: Evaluation) -> list[tuple[str, str, float]]:
    """Label, metric and coverage of the answer and judge metrics that miss some questions."""
    names = [*all_metrics("answer"), *all_metrics("judge")]
    return [
        (label, metric, summary["measured"][metric])
        for label, summary in evaluation.summaries.items()
        for metric in names
        if summary["measured"].get(metric, 1.0) < 1.0
    ]


def incomplete_labels(evaluation: Evaluation) -> list[str]:
    """The labels that failed, or were not answered or judged, on over 5% of the questions."""
    failed = [
        label for label, trial in evaluation.trials.items() if too_many_failed(trial.failures, len(trial.rankings))
    ]
    gaps = [label for label, _, share in _gaps(evaluation) if share < 1.0 - MAX_FAILED]
    return list(dict.fromkeys([*failed, *gaps]))


def missed(finished: Finished) -> list[str]:
    """A line for each target that the run's figures miss."""
    from hopbench.eval.runs.results import results

    evaluation = finished.evaluation
    if not evaluation.plan.targets:
        return []
    found = check_targets(evaluation.plan.targets, results(evaluation)["strategies"])
    return [item.words for item in found if not item.passed]


def refuse_missed(finished: Finished) -> None:
    """Raise TargetError (exit 3) where a figure misses its target."""
    if lines := missed(finished):
        raise TargetError("\n  ".join([f"{len(lines)} target{'s' if len(lines) > 1 else ''} missed:", *lines]))


def refuse_incomplete(finished: Finished) -> None:
    """Raise IncompleteError (exit 4) where a label failed on over 5% of the questions."""
    if finished.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed for {', '.join(finished.incomplete)}: "
            "the reasons stand in questions.parquet (failure, answer_failure, judge_failure) and in the report; the "
            "same command asks again what a model did not answer"
        )

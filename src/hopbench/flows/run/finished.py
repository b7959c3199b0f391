"""A finished run: its folder, whether it is complete, and how many failures are too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.metrics import all_metrics
from hopbench.eval.runs.files import FinishedRun
from hopbench.eval.runs.targets import check_targets
from hopbench.eval.types import MAX_FAILED, Benchmark, too_many_failed
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import IncompleteError, InputError, TargetError

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation


@dataclass
class Finished:
    """A finished run: its evaluation, its warnings, and the labels that failed too often.

    `key` names it in MLflow, `run_ids` are MLflow's own names by key, `links` the addresses of its pages there by name.
    A command may add `facts` for the report, `tags` of the run and of labels for MLflow, and `expired` keys of earlier
    runs there whose artifacts may go.
    """

    evaluation: Evaluation
    key: str
    started_at: float
    incomplete: Sequence[str] = ()
    run_ids: Mapping[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    label_tags: dict[str, dict[str, str]] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)


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

    targets = finished.evaluation.plan.targets
    found = check_targets(targets, results(finished.evaluation)["strategies"]) if targets else ()
    return [item.words for item in found if not item.passed]


def refuse_missed(finished: Finished) -> None:
    """Raise TargetError (exit 3) where a figure misses its target."""
    if lines := missed(finished):
        raise TargetError("\n  ".join([f"{len(lines)} target{'s' if len(lines) > 1 else ''} missed:", *lines]))


def refuse(finished: Finished) -> None:
    """Raise IncompleteError (exit 4) where a label failed on over 5% of the questions; see `refuse_missed`."""
    if finished.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed for {', '.join(finished.incomplete)}: "
            "the reasons stand in questions.parquet (failure, answer_failure, judge_failure) and in the report; the "
            "same command asks again what a model did not answer"
        )
    refuse_missed(finished)


@dataclass(frozen=True)
class RunFolder(FinishedRun):
    """A finished run in a folder; `run_id` is its MLflow run, where it was fetched from there."""

    run_id: str = ""

    @classmethod
    def read(cls, folder: Path, run_id: str = "") -> RunFolder:
        """Read a run's folder, MLflow's where `run_id` names one; InputError where it is none."""
        return replace(super().read(folder), run_id=run_id)

    @property
    def place(self) -> str:
        """The absolute path."""
        return str(self.folder.resolve())

    @property
    def short(self) -> str:
        """The folder's own name, or the beginning of the run id."""
        return self.run_id[:8] or self.folder.resolve().name

    @property
    def display_name(self) -> str:
        """The folder as the user wrote it, or the MLflow run."""
        return f"MLflow run {self.run_id}" if self.run_id else str(self.folder)

    @property
    def description(self) -> str:
        """The folder or MLflow run, with its command and start time."""
        command = " ".join(str(self.facts.get("command", "")).split()[:2])
        started = str(self.facts.get("started", ""))[:16].replace("T", " ")
        about = ", ".join(filter(None, (command, started and f"{started} UTC")))
        return f"{self.display_name} ({about})" if about else self.display_name

    def options(self, dataset: str | None = None) -> GraphOptions:
        """The benchmark and graph settings of the run; `dataset` says where the benchmark is now."""
        place = dataset or self.settings.get("dataset")
        if not place:
            raise InputError(f"{self.folder} does not say where its benchmark is: name it with --dataset")
        return GraphOptions.from_settings(self.settings, place)

    def benchmark(self, dataset: str | None = None, home: Home | None = None) -> Benchmark:
        """The benchmark that was run, from the `home`'s mapped passages. Raises InputError where it has changed."""
        options = self.options(dataset)
        try:
            benchmark = options.benchmark(home)
        except InputError as error:
            if dataset is not None:
                raise
            message = f"{error} ({self.folder} was run on it: say with --dataset where it is now)"
            raise InputError(message) from error
        if benchmark.digest != self.digest:
            run = self.results["benchmark"]
            raise InputError(
                f"{self.folder} was run on {run['name']} (digest {self.digest[:12]}, {run['questions']} questions), "
                f"and {options.dataset} has digest {benchmark.digest[:12]} ({len(benchmark.questions)} questions): "
                "name the benchmark that was run with --dataset, or run it again"
            )
        return benchmark

"""A sweep in MLflow, written from the ledger's records: a parent run, and each trial once as its child."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from hopbench.eval.metrics import measured_shares, with_coverage
from hopbench.flows.run.payloads import call_metrics, parent_name, plugin_tags, source_tags, tracked_dataset
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Artifact, RunPayload, Tracker
from hopbench.flows.tracking.payload import TABLE_TAG, Param, Tag, trial_name, write_table
from hopbench.retrieval.llm.endpoint import asked_of
from hopbench.retrieval.support.locking import open_lock

if TYPE_CHECKING:
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Cell, Result, Selection
    from hopbench.eval.sweep.space import Candidate
    from hopbench.eval.trials.ledger import TrialRecord
    from hopbench.eval.types import Benchmark


def sweep_note(plan: SweepPlan, sweep_id: str, best: Result | None) -> str:
    """The sweep's extent, the query for its trials, and its best configuration once it is known."""
    metric = plan.content.objective.metric
    names = ", ".join(Path(name).name for name in plan.datasets)
    extent = (
        f"{plan.trials} trials ({plan.content.search}) on {names} by {metric}. "
        f"Its trials: `tags.{Tag.SWEEP_ID} = '{sweep_id}'`"
    )
    return extent if best is None else f"{extent}\n\nBest: `{best.candidate.title}`, {best.mean(metric):.3f}"


def trial_note(plan: SweepPlan, candidate: Candidate, context: TrialContext, record: TrialRecord) -> str:
    """A trial: its configuration in full, the data set, and the objective."""
    benchmark, metric = context.benchmark, plan.content.objective.metric
    value = record.metrics.get(metric)
    scored = f": {metric} {value:.3f}" if value is not None else ""
    return f"`{candidate.title}` on {benchmark.name}, {len(benchmark.questions)} questions{scored}"


def kind(candidate: Candidate) -> str:
    """A configuration that the search varied is being tuned; any other has its label's kind."""
    from hopbench.retrieval.strategies.label import TUNED
    from hopbench.retrieval.strategies.registry import kind_of

    return TUNED if candidate.varied else kind_of(candidate.label, candidate.strategy).kind


def trial_params(candidate: Candidate, cell: Cell, benchmark: Benchmark, record: TrialRecord) -> dict[str, Any]:
    """The trial's parameters: data set, the strategy's own, the graph's build numbers, and the models."""
    return {
        Param.STRATEGY: candidate.strategy.name,
        Param.LABEL: candidate.title,
        Param.DATASET: benchmark.name,
        Param.QUESTIONS: len(benchmark.questions),
        Param.SEED: cell.seed,
        **candidate.strategy.spec(),
        **{f"build.{name}": value for name, value in candidate.build.settings().items()},
        **_readers(record),
    }


def trial_costs(record: TrialRecord) -> dict[str, float]:
    """What was spent; the size of contexts only where there were any."""
    if record.failures < len(record.questions):
        return dict(record.costs)
    return {name: value for name, value in record.costs.items() if name != "context_tokens"}


def _readers(record: TrialRecord) -> dict[str, str]:
    """Reader and judge: scores of different models cannot be compared."""
    reader, judge = record.settings.get("reader"), record.settings.get("judge")
    params: dict[str, str] = {Param.LLM: str(reader["llm"])} if reader else {}
    if judge:
        params |= {Param.JUDGE: f"{judge['model']}@{judge['url']}", Param.JUDGE_PROFILE: judge["profile"]}
    return params | {name: str(value) for name, value in asked_of(judge or reader or {}).items()}


BEST = 20
"""So many of a sweep's trials are compared in MLflow: its page is read by eye."""


@dataclass
class SweepPublisher:
    """Publishes a sweep's trials to MLflow while it holds the sweep's lock; `started` is in seconds since the epoch."""

    tracker: Tracker
    plan: SweepPlan
    sweep_id: str
    started: float
    home: Home
    _lock: FileLock = field(init=False)
    _held: bool = False
    _queue: list[RunPayload] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the lock and begin to publish, unless another process holds it."""
        path = self.home.scratch / f"sweep-{self.sweep_id}.lock"
        open_lock(path, "a").close()  # replaces an empty folder, refuses a full one
        self._lock = FileLock(path)
        self._publish()

    def trial(
        self, candidate: Candidate, cell: Cell, context: TrialContext, record: TrialRecord, role: str = "sweep"
    ) -> None:
        """A finished or reused trial as a child run."""
        from hopbench.eval.sweep.results import is_complete

        benchmark = context.benchmark
        key = f"{self.sweep_id}/{benchmark.name}/{record.trial_id}".replace("'", "")
        self.keys[record.trial_id] = key
        payload = RunPayload(
            key,
            trial_name(candidate.label, candidate.varied, candidate.without, record.trial_id),
            parent_key=self.sweep_id,
            params=trial_params(candidate, cell, benchmark, record),
            metrics={
                **with_coverage(record.metrics, measured_shares(record.questions, benchmark)),
                **trial_costs(record),
                "seconds": record.seconds,
                "failures": float(record.failures),
            },
            tags=self._trial_tags(candidate, context, record, role),
            dataset=tracked_dataset(benchmark, context.digest),
            artifacts=(Artifact(write_table(self._folder / record.trial_id, record.questions, benchmark.questions)),),
            # A FAILED trial is written again when the models have answered the rest.
            status="FINISHED" if is_complete(record) else "FAILED",
            started_at=record.started,
            ended_at=record.ended,
            once=True,
        )
        self._queue.append(payload)
        self._publish()

    def finished(
        self,
        results: Sequence[Result],
        reported: Result | None,
        bias: Selection | None,
        files: Sequence[Path],
        calls: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Publish what no other process has, then the parent run with the best configuration and the files.

        `calls` are this process' calls to language models by purpose.
        """
        self._lock.acquire()
        self._held = True
        self._publish()
        best, objective = results[0], self.plan.content.objective
        names = dict.fromkeys((objective.metric, objective.also))
        metrics = {f"best_{name}": best.mean(name) for name in names} | call_metrics(calls)
        if reported is not None:
            metrics |= {f"report_{name}": reported.mean(name) for name in names}
        if bias is not None:
            metrics |= {f"honest_{objective.metric}": bias.honest, "optimism": bias.optimism}
        self.tracker.log(
            self._parent(
                best,
                params={
                    Param.FILE: self.plan.file.name,
                    Param.DATASETS: ",".join(best.by_dataset),
                    Param.SEARCH: self.plan.content.search,
                    Param.TRIALS: sum(len(result.records) for result in results),
                    Param.OBJECTIVE: objective.metric,
                    Param.BEST: best.candidate.label,
                    **{f"best.{name}": value for name, value in best.candidate.strategy.spec().items()},
                },
                metrics=metrics,
                artifacts=tuple(Artifact(file) for file in (self.plan.file, *files)),
                compared=tuple(self.best(results)),
                ended_at=max(time.time(), self.started),
            )
        )

    def best(self, results: Sequence[Result]) -> list[str]:
        """The keys of the best configurations' trials, at most `BEST`."""
        return [self.keys[record.trial_id] for result in results for record in result.records.values()][:BEST]

    def crown(self, winner: Result) -> None:
        """The champion tag of each data set's benchmark for the winner's first trial there."""
        for record in _first(winner).values():
            self.tracker.crown(self.keys[record.trial_id], str(record.settings["dataset"]))

    def close(self) -> None:
        """Release the lock and remove the files that the tracker has read."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.release(force=True)

    def _publish(self) -> None:
        if not self._held:
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                return
            self._held = True
            self.tracker.log(self._parent(status="RUNNING"))
        for payload in self._queue:
            self.tracker.log(payload)
        self._queue.clear()

    @property
    def _folder(self) -> Path:
        return self.home.scratch / f"sweep-{self.sweep_id}-{self.tracker.pid}"

    def _trial_tags(
        self, candidate: Candidate, context: TrialContext, record: TrialRecord, role: str
    ) -> dict[str, str]:
        return self._tags(
            {
                **source_tags("hopbench sweep"),
                Tag.NOTE: trial_note(self.plan, candidate, context, record),
                Tag.TRIAL_ID: record.trial_id,
                Tag.KIND: kind(candidate),
                Tag.WITHOUT: ",".join(candidate.without),
                Tag.GRAPH_FINGERPRINT: context.fingerprint,
                Tag.BENCHMARK_DIGEST: context.digest,
                Tag.ROLE: role if role == "report" else context.benchmark.role,
                Tag.CODE_VERSION: str(record.settings["code"]),
                **plugin_tags(record.settings.get("plugins")),
                **TABLE_TAG,
            }
        )

    def _parent(self, best: Result | None = None, **values: Any) -> RunPayload:
        name = parent_name("sweep", self.plan.file.stem, self.started)
        tags = self._tags({**source_tags("hopbench sweep"), Tag.NOTE: sweep_note(self.plan, self.sweep_id, best)})
        return RunPayload(self.sweep_id, name, tags=tags, started_at=self.started, **values)

    def _tags(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {Tag.SWEEP_ID: self.sweep_id, **{name: value for name, value in (more or {}).items() if value}}


def _first(winner: Result) -> Mapping[str, TrialRecord]:
    return {dataset: records[0] for dataset, records in winner.by_dataset.items()}

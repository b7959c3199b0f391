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
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.payload import TABLE_TAG, Param, RunPayload, Tag, trial_name, write_table
from hopbench.retrieval.llm.endpoint import asked_of
from hopbench.retrieval.support.locking import open_lock

if TYPE_CHECKING:
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Cell, Result, Selection
    from hopbench.eval.sweep.space import Candidate
    from hopbench.eval.trials.ledger import TrialRecord


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
class SweepOutcome:
    """A finished sweep: results best first, how many trials were reused, and warnings.

    `reported` is the winner on the set it was not chosen on, `bias` how much its lead is due to the choice, `calls` the
    calls to language models by purpose. `incomplete` names trials that failed or of which models answered too little.
    `links` are addresses of MLflow's pages by name.
    """

    plan: SweepPlan
    results: Sequence[Result]
    reported: Result | None
    bias: Selection | None
    trials: int
    reused: int
    warnings: list[str]
    files: Sequence[Path] = ()
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    incomplete: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)


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
        costs = dict(record.costs)
        if record.failures == len(record.questions):
            costs.pop("context_tokens", None)  # of no context
        payload = RunPayload(
            key,
            trial_name(candidate.label, candidate.varied, candidate.without, record.trial_id),
            parent_key=self.sweep_id,
            params={
                Param.STRATEGY: candidate.strategy.name,
                Param.LABEL: candidate.title,
                Param.DATASET: benchmark.name,
                Param.QUESTIONS: len(benchmark.questions),
                Param.SEED: cell.seed,
                **candidate.strategy.spec(),
                **{f"build.{name}": value for name, value in candidate.build.settings().items()},
                **_readers(record),
            },
            metrics={
                **with_coverage(record.metrics, measured_shares(record.questions, benchmark)),
                **costs,
                "seconds": record.seconds,
                "failures": float(record.failures),
            },
            tags=self._trial_tags(candidate, context, record, role),
            dataset=tracked_dataset(benchmark, context.digest),
            artifacts=(write_table(self._folder / record.trial_id, record.questions, benchmark.questions),),
            # A FAILED trial is written again when the models have answered the rest.
            status="FINISHED" if is_complete(record) else "FAILED",
            started_at=record.started,
            ended_at=record.ended,
            once=True,
        )
        self._queue.append(payload)
        self._publish()

    def _trial_tags(
        self, candidate: Candidate, context: TrialContext, record: TrialRecord, role: str
    ) -> dict[str, str]:
        from hopbench.retrieval.strategies.label import TUNED
        from hopbench.retrieval.strategies.registry import kind_of

        benchmark, metric = context.benchmark, self.plan.content.objective.metric
        value = record.metrics.get(metric)
        scored = f": {metric} {value:.3f}" if value is not None else ""
        # A configuration that the search varied is being tuned; any other has its label's kind.
        kind = TUNED if candidate.varied else kind_of(candidate.label, candidate.strategy).kind
        return self._tags(
            {
                **source_tags("hopbench sweep"),
                Tag.NOTE: f"`{candidate.title}` on {benchmark.name}, {len(benchmark.questions)} questions{scored}",
                Tag.TRIAL_ID: record.trial_id,
                Tag.KIND: kind,
                Tag.WITHOUT: ",".join(candidate.without),
                Tag.GRAPH_FINGERPRINT: context.fingerprint,
                Tag.BENCHMARK_DIGEST: context.digest,
                Tag.ROLE: role if role == "report" else benchmark.role,
                Tag.CODE_VERSION: str(record.settings["code"]),
                **plugin_tags(record.settings.get("plugins")),
                **TABLE_TAG,
            }
        )

    def finished(self, swept: SweepOutcome) -> None:
        """Publish what no other process has, then the parent run with the best configuration and the files."""
        self._lock.acquire()
        self._held = True
        self._publish()
        best, objective = swept.results[0], self.plan.content.objective
        names = dict.fromkeys((objective.metric, objective.also))
        metrics = {f"best_{name}": best.mean(name) for name in names} | call_metrics(swept.calls)
        if swept.reported is not None:
            metrics |= {f"report_{name}": swept.reported.mean(name) for name in names}
        if swept.bias is not None:
            metrics |= {f"honest_{objective.metric}": swept.bias.honest, "optimism": swept.bias.optimism}
        self.tracker.log(
            self._parent(
                best,
                params={
                    Param.FILE: self.plan.file.name,
                    Param.DATASETS: ",".join(best.by_dataset),
                    Param.SEARCH: self.plan.content.search,
                    Param.TRIALS: sum(len(result.records) for result in swept.results),
                    Param.OBJECTIVE: objective.metric,
                    Param.BEST: best.candidate.label,
                    **{f"best.{name}": value for name, value in best.candidate.strategy.spec().items()},
                },
                metrics=metrics,
                artifacts=(self.plan.file, *swept.files),
                compared=tuple(self.best(swept.results)),
                ended_at=max(time.time(), self.started),
            )
        )

    def best(self, results: Sequence[Result]) -> list[str]:
        """The keys of the best configurations' trials, at most `BEST`."""
        return [self.keys[record.trial_id] for result in results for record in result.records.values()][:BEST]

    def crown(self, winner: Result) -> None:
        """The champion tag of each data set's benchmark for the winner's first trial there."""
        for records in winner.by_dataset.values():
            self.tracker.crown(self.keys[records[0].trial_id], str(records[0].settings["dataset"]))

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

    def _parent(self, best: Result | None = None, **values: Any) -> RunPayload:
        """The sweep's extent, the query for its trials, and its best configuration once it is known."""
        metric = self.plan.content.objective.metric
        names = ", ".join(Path(name).name for name in self.plan.datasets)
        note = (
            f"{self.plan.trials} trials ({self.plan.content.search}) on {names} by {metric}. "
            f"Its trials: `tags.{Tag.SWEEP_ID} = '{self.sweep_id}'`"
        )
        if best is not None:
            note += f"\n\nBest: `{best.candidate.title}`, {best.mean(metric):.3f}"
        name = parent_name("sweep", self.plan.file.stem, self.started)
        tags = self._tags({**source_tags("hopbench sweep"), Tag.NOTE: note})
        return RunPayload(self.sweep_id, name, tags=tags, started_at=self.started, **values)

    def _tags(self, more: Mapping[str, str]) -> dict[str, str]:
        return {Tag.SWEEP_ID: self.sweep_id, **{name: value for name, value in more.items() if value}}

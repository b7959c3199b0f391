"""A sweep in MLflow, written from the ledger's records: a parent run, and each trial once as its child.

Of several processes on one sweep only one writes at a time; the next process writes what a killed one did not.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import measured_shares, with_coverage
from hopbench.flows.run.payloads import call_metrics, plugin_tags
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Artifact, Dataset, RunPayload, Tracker
from hopbench.flows.tracking.names import Param, Tag
from hopbench.flows.tracking.payload import MAX_NAME
from hopbench.retrieval.support.locking import open_lock

if TYPE_CHECKING:
    from hopbench.eval.sweep.candidate import Candidate
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Cell, Result
    from hopbench.eval.sweep.selection import Selection
    from hopbench.eval.trials.ledger import TrialRecord
    from hopbench.eval.types import Benchmark

TABLE = "questions.json"


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
        from hopbench.eval.sweep.readers import is_complete

        benchmark = context.benchmark
        counts = {"questions": len(benchmark.questions), "passages": len(benchmark.passages)}
        key = f"{self.sweep_id}/{benchmark.name}/{record.trial_id}".replace("'", "")
        self.keys[record.trial_id] = key
        payload = RunPayload(
            key,
            f"{benchmark.name} {candidate.title}"[:MAX_NAME],
            parent_key=self.sweep_id,
            params=_params(candidate, cell, benchmark, record),
            metrics={
                **with_coverage(record.metrics, measured_shares(record.questions, benchmark)),
                **_costs(record),
                "seconds": record.seconds,
                "failures": float(record.failures),
            },
            tags=self._trial_tags(candidate, context, record, role),
            dataset=Dataset(benchmark.name, context.digest, counts),
            artifacts=(Artifact(self._table(record, context)),),
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
                ended_at=max(time.time(), self.started),
            )
        )

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

    @staticmethod
    def _kind(candidate: Candidate) -> str:
        """A configuration that the search varied is being tuned; any other has its label's kind."""
        from hopbench.retrieval.strategies.kinds import TUNED, kind_of

        return TUNED if candidate.varied else kind_of(candidate.label, candidate.strategy).kind

    def _table(self, record: TrialRecord, context: TrialContext) -> Path:
        """The trial's per-question table as MLflow shows tables."""
        rows = record.questions.drop(columns="ranked_ids", errors="ignore")
        texts = {question.id: (question.text, question.type) for question in context.benchmark.questions}
        plain = rows.astype(object).where(rows.notna(), None).values.tolist()
        data = [[name, *texts[name], *values] for name, values in zip(rows.index, plain, strict=True)]
        table = {"columns": ["question_id", "question", "type", *rows.columns], "data": data}
        path = self._folder / record.trial_id / TABLE
        write_atomically(path, json.dumps(table, ensure_ascii=False).encode())
        return path

    def _trial_tags(
        self, candidate: Candidate, context: TrialContext, record: TrialRecord, role: str
    ) -> dict[str, str]:
        return self._tags(
            {
                Tag.TRIAL_ID: record.trial_id,
                Tag.KIND: self._kind(candidate),
                Tag.WITHOUT: ",".join(candidate.without),
                Tag.GRAPH_FINGERPRINT: context.fingerprint,
                Tag.BENCHMARK_DIGEST: context.digest,
                Tag.ROLE: role if role == "report" else context.benchmark.role,
                Tag.CODE_VERSION: str(record.settings["code"]),
                **plugin_tags(record.settings.get("plugins")),
                "mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}]),
            }
        )

    def _parent(self, **values: Any) -> RunPayload:
        name = f"sweep {self.plan.file.stem}"
        return RunPayload(self.sweep_id, name, tags=self._tags(), started_at=self.started, **values)

    def _tags(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {Tag.SWEEP_ID: self.sweep_id, **{name: value for name, value in (more or {}).items() if value}}


def _params(candidate: Candidate, cell: Cell, benchmark: Benchmark, record: TrialRecord) -> dict[str, Any]:
    """The trial's parameters: data set, the strategy's own, the graph's build numbers, and the models."""
    return {
        Param.STRATEGY: candidate.strategy.name,
        Param.DATASET: benchmark.name,
        Param.QUESTIONS: len(benchmark.questions),
        Param.SEED: cell.seed,
        **candidate.strategy.spec(),
        **{f"build.{name}": value for name, value in candidate.build.settings().items()},
        **_readers(record),
    }


def _costs(record: TrialRecord) -> dict[str, float]:
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
    return params


def _first(winner: Result) -> Mapping[str, TrialRecord]:
    return {dataset: records[0] for dataset, records in winner.by_dataset.items()}

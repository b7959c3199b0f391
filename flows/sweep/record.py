"""A sweep in MLflow, written from the ledger's records: a parent run, and each trial once as its child.

Of several processes on one sweep only one writes at a time; what a killed one left out, the next one writes.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import measured_shares, with_coverage
from hopbench.flows.run.record import call_metrics, plugin_tags
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Artifact, Dataset, RunPayload, Tracker
from hopbench.flows.tracking.payload import MAX_NAME
from hopbench.retrieval.support.locking import open_lock

if TYPE_CHECKING:
    from hopbench.eval.sweep.candidate import Candidate
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Cell, Result
    from hopbench.eval.sweep.selection import Selection
    from hopbench.eval.trials.ledger import TrialRecord

TABLE = "questions.json"


@dataclass
class Drainer:
    """Hands a sweep's records to the tracker while it holds the sweep's lock; `started` is since the epoch."""

    tracker: Tracker
    plan: SweepPlan
    sweep_id: str
    started: float
    home: Home
    _lock: IO[str] = field(init=False)
    _held: bool = False
    _waiting: list[RunPayload] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin to write, or leave it to the process that does."""
        self._lock = open_lock(self.home.scratch / f"sweep-{self.sweep_id}.lock")
        self._drain()

    def trial(
        self, candidate: Candidate, cell: Cell, arena: TrialContext, record: TrialRecord, role: str = "sweep"
    ) -> None:
        """A finished or reused trial as a child run."""
        from hopbench.eval.sweep.readers import is_complete

        benchmark = arena.benchmark
        counts = {"questions": len(benchmark.questions), "passages": len(benchmark.passages)}
        key = f"{self.sweep_id}/{benchmark.name}/{record.trial_id}".replace("'", "")
        self.keys[record.trial_id] = key
        shown: dict[str, str | int] = {
            "dataset": benchmark.name,
            "questions": len(benchmark.questions),
            "seed": cell.seed,
        }
        build = {f"build.{name}": value for name, value in candidate.build.settings().items()}
        payload = RunPayload(
            key,
            f"{benchmark.name} {candidate.title}"[:MAX_NAME],
            parent_key=self.sweep_id,
            params={
                "strategy": candidate.strategy.name,
                **shown,
                **candidate.strategy.spec(),
                **build,
                **_readers(record),
            },
            metrics={
                **with_coverage(record.metrics, measured_shares(record.questions, benchmark)),
                **_costs(record),
                "seconds": record.seconds,
                "failures": float(record.failures),
            },
            tags=self._tags(
                trial_id=record.trial_id,
                kind=self._kind(candidate),
                without=",".join(candidate.without),
                graph_fingerprint=arena.fingerprint,
                benchmark_digest=arena.digest,
                role=role if role == "report" else benchmark.role,
                code_version=str(record.settings["code"]),
                **plugin_tags(record.settings.get("plugins")),
                **{"mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}])},
            ),
            dataset=Dataset(benchmark.name, arena.digest, counts),
            artifacts=(Artifact(self._table(record, arena)),),
            status="FINISHED" if is_complete(record) else "FAILED",  # written anew when models have said the rest
            started_at=record.started,
            ended_at=record.ended,
            once=True,
        )
        self._waiting.append(payload)
        self._drain()

    def finished(
        self,
        results: Sequence[Result],
        reported: Result | None,
        bias: Selection | None,
        files: Sequence[Path],
        calls: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """All that another process did not write, then the parent with the best configuration and the files.

        `calls` are this process' calls to language models by purpose.
        """
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._held = True
        self._drain()
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
                    "file": self.plan.file.name,
                    "datasets": ",".join(best.by_dataset),
                    "search": self.plan.content.search,
                    "trials": sum(len(result.records) for result in results),
                    "objective": objective.metric,
                    "best": best.candidate.label,
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
        """Let the next process write; what the tracker has read is removed."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()

    def _drain(self) -> None:
        if not self._held:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._held = True
            self.tracker.log(self._parent(status="RUNNING"))
        for payload in self._waiting:
            self.tracker.log(payload)
        self._waiting.clear()

    @property
    def _folder(self) -> Path:
        return self.home.scratch / f"sweep-{self.sweep_id}-{self.tracker.pid}"

    @staticmethod
    def _kind(candidate: Candidate) -> str:
        """A configuration that the search made is one that is being tuned; others are what their label is."""
        from hopbench.retrieval.strategies.kinds import TUNED, kind_of

        return TUNED if candidate.varied else kind_of(candidate.label, candidate.strategy).kind

    def _table(self, record: TrialRecord, arena: TrialContext) -> Path:
        """The trial's per-question table as MLflow shows tables."""
        rows = record.questions.drop(columns="ranked_ids", errors="ignore")
        texts = {question.id: (question.text, question.type) for question in arena.benchmark.questions}
        plain = rows.astype(object).where(rows.notna(), None).values.tolist()
        data = [[name, *texts[name], *values] for name, values in zip(rows.index, plain, strict=True)]
        table = {"columns": ["question_id", "question", "type", *rows.columns], "data": data}
        path = self._folder / record.trial_id / TABLE
        write_atomically(path, json.dumps(table, ensure_ascii=False).encode())
        return path

    def _parent(self, **values: Any) -> RunPayload:
        name = f"sweep {self.plan.file.stem}"
        return RunPayload(self.sweep_id, name, tags=self._tags(), started_at=self.started, **values)

    def _tags(self, **more: str) -> dict[str, str]:
        return {"sweep_id": self.sweep_id, **{name: value for name, value in more.items() if value}}


def _costs(record: TrialRecord) -> dict[str, float]:
    """What was spent; the size of contexts only where there were any."""
    if record.failures < len(record.questions):
        return dict(record.costs)
    return {name: value for name, value in record.costs.items() if name != "context_tokens"}


def _readers(record: TrialRecord) -> dict[str, str]:
    """Who answered and who judged: scores of different models are not to be compared."""
    reader, judge = record.settings.get("reader"), record.settings.get("judge")
    found = {"llm": str(reader["llm"])} if reader else {}
    if judge:
        found |= {"judge": f"{judge['model']}@{judge['url']}", "judge_profile": judge["profile"]}
    return found


def _first(winner: Result) -> Mapping[str, TrialRecord]:
    return {dataset: records[0] for dataset, records in winner.by_dataset.items()}

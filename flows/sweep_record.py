"""A sweep in MLflow: one parent run, a child for each trial; written again, both are updated and never doubled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.tracking import Artifact, Dataset, RunPayload, Tracker
from flows.tracking_payload import MAX_NAME

if TYPE_CHECKING:
    from eval.ledger import TrialRecord
    from eval.sweep import Arena, Result
    from eval.sweep_plan import Candidate, SweepPlan


@dataclass
class Tracked:
    """Hands a sweep's runs to the tracker as they end; `started` is when the sweep first was, since the epoch."""

    tracker: Tracker
    plan: SweepPlan
    sweep_id: str
    started: float
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Open the parent run."""
        self.name = f"sweep {self.plan.file.stem}"
        self.tracker.log(self._parent(status="RUNNING"))

    def trial(self, candidate: Candidate, arena: Arena, record: TrialRecord) -> None:
        """A finished or reused trial as a child run."""
        benchmark = arena.benchmark
        counts = {"questions": len(benchmark.questions), "passages": len(benchmark.passages)}
        self.tracker.log(
            RunPayload(
                f"{self.sweep_id}/{benchmark.name}/{record.trial_id}".replace("'", ""),
                " without ".join([f"{benchmark.name} {candidate.label}", *candidate.without])[:MAX_NAME],
                parent_key=self.sweep_id,
                params={"strategy": candidate.strategy.name, "dataset": benchmark.name, **candidate.strategy.spec()},
                metrics={**record.metrics, "seconds": record.seconds, "failures": float(record.failures)},
                tags=self._tags(
                    trial_id=record.trial_id,
                    without=",".join(candidate.without),
                    graph_fingerprint=arena.fingerprint,
                    benchmark_digest=arena.digest,
                    role=benchmark.role,
                    code_version=str(record.settings["code"]),
                ),
                dataset=Dataset(benchmark.name, arena.digest, counts),
                started_at=record.started,
                ended_at=record.ended,
            )
        )

    def finished(self, results: Sequence[Result], files: Sequence[Path]) -> None:
        """The parent with the best configuration and the sweep's files."""
        best, objective = results[0], self.plan.content.objective
        self.tracker.log(
            self._parent(
                params={
                    "file": self.plan.file.name,
                    "datasets": ",".join(best.records),
                    "trials": self.plan.trials,
                    "objective": objective.metric,
                    "best": best.candidate.label,
                    **{f"best.{name}": value for name, value in best.candidate.strategy.spec().items()},
                },
                metrics={f"best_{name}": best.mean(name) for name in dict.fromkeys((objective.metric, objective.also))},
                artifacts=tuple(Artifact(file) for file in (self.plan.file, *files)),
                ended_at=max(time.time(), self.started),
            )
        )

    def _parent(self, **values: Any) -> RunPayload:
        return RunPayload(self.sweep_id, self.name, tags=self._tags(), started_at=self.started, **values)

    def _tags(self, **more: str) -> dict[str, str]:
        return {"sweep_id": self.sweep_id, **{name: value for name, value in more.items() if value}}

"""What a run is asked for, after the command line and the config file are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.fitted import fitted_on
from hopbench.eval.types import BenchmarkQuestion
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.runs.targets import Target

RUNNERS = ("threads", "processes", "dask")


def runner_parts(runner: str) -> tuple[str, str]:
    """`dask:HOST:PORT` → (`dask`, `HOST:PORT`); the address is empty where none is named. Refuses unknown runners."""
    kind, _, address = runner.partition(":")
    if kind not in RUNNERS:
        raise UnknownNameError("runner", kind, RUNNERS)
    if address and kind != "dask":
        raise InputError(f"--runner {runner}: only dask takes an address, such as dask:127.0.0.1:8786")
    return kind, address


@dataclass(frozen=True)
class WorkerOptions:
    """Over which task runner's workers trials are spread (none: done here), and questions a batch."""

    runner: str = ""
    workers: int | None = None
    batch: int | None = None

    def check(self, prefect: bool, llm: str | None) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot ask the model."""
        if self.runner:
            kind, _ = runner_parts(self.runner)
            if not prefect:
                raise InputError(f"--runner {self.runner} is one of Prefect's task runners: leave out --no-prefect")
            if llm is not None and kind != "threads":
                raise InputError(
                    f"--runner {self.runner} has workers that share no model's pace and budget: with --llm, choose "
                    "--runner threads or none"
                )
        elif self.workers is not None:
            raise InputError(f"--workers {self.workers}: of which runner? Add --runner {'|'.join(RUNNERS)}")


@dataclass(frozen=True, kw_only=True)
class RunOptions(GraphOptions):
    """A run: which strategies over which questions, and where its files go."""

    out: Path
    strategies: str = "all"
    changes: Sequence[str] = ()
    ragas: bool = True
    targets: Sequence[str] = ()
    seed: int = 0
    prefect: bool = True
    models: ModelOptions = field(default_factory=ModelOptions)
    command: str = "hopbench run"
    runner: str = ""
    workers: int | None = None
    batch: int | None = None
    tuned_on: Sequence[str] = ()

    def fitted_on(self) -> list[FittedOn]:
        """The sets on which the labels' changes were tuned: as best.yaml writes them, or named as `--dataset` is."""
        return [FittedOn.read(text) or fitted_on(load_benchmark(text)) for text in self.tuned_on]

    def __post_init__(self) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot ask the model."""
        WorkerOptions(self.runner, self.workers, self.batch).check(self.prefect, self.models.llm)

    def checked_targets(
        self, labels: Sequence[str], questions: Sequence[BenchmarkQuestion] | None = None
    ) -> list[Target]:
        """The targets for a run of these labels; refuses what is no target, and what the run will not measure."""
        from hopbench.eval.runs.targets import parse_targets, refuse_unmeasured

        models = self.models
        targets = parse_targets(self.targets, labels)
        judged = () if models.judge is None else models.metrics
        refuse_unmeasured(targets, ragas=self.ragas, judged=judged, reader=models.llm is not None, questions=questions)
        return targets

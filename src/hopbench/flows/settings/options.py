"""The options of a run, after the command line and the config file are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import BenchmarkQuestion, fitted_on
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.runs.targets import Target
    from hopbench.retrieval.external import Function
    from hopbench.retrieval.strategies.base import Strategy

RUNNERS = ("threads", "processes", "dask")


def runner_parts(runner: str) -> tuple[str, str]:
    """Split a runner into its kind and address: `dask=HOST:PORT` → (`dask`, `HOST:PORT`)."""
    kind, _, address = runner.partition("=")
    if kind not in RUNNERS:
        raise UnknownNameError("runner", kind, RUNNERS)
    if address and kind != "dask":
        raise InputError(f"--runner {runner}: only dask takes an address, such as dask=127.0.0.1:8786")
    return kind, address


@dataclass(frozen=True)
class WorkerOptions:
    """The task runner and workers that trials run on (none: this process), and the questions per batch."""

    runner: str = ""
    workers: int | None = None
    batch: int | None = None

    @property
    def processes(self) -> int:
        """How many processes may divide a batch: one where a runner has several workers already."""
        from hopbench.retrieval.support.forked import usable_processors

        return 1 if self.runner else usable_processors()

    def check(self, prefect: bool, llm: str | None) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot call the model."""
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
    runs: Sequence[str] = ()
    retrievers: Sequence[str] = ()
    metrics: Sequence[str] = ()
    functions: Mapping[str, Function] = field(default_factory=dict)

    def labels(self) -> dict[str, Strategy]:
        """The labels of the run with their strategies: ours, then those of --runs, --retriever and `functions`."""
        from hopbench.flows.settings.foreign import foreign_labels, of_ours
        from hopbench.retrieval.strategies.registry import resolve  # loads scipy

        foreign = foreign_labels(self.runs, self.retrievers, self.functions, self.changes)
        return {**resolve(self.strategies, of_ours(self.changes, foreign)), **foreign}

    @property
    def selection(self) -> tuple[str, ...]:
        """The selection: nightly runs with the same selection are compared."""
        return (self.strategies, *self.changes, *self.runs, *self.retrievers, *self.functions)

    @property
    def spread(self) -> WorkerOptions:
        """On what its trials run."""
        return WorkerOptions(self.runner, self.workers, self.batch)

    def asked_metrics(self) -> tuple[str, ...]:
        """What is measured beside the metrics that run by default: asked for by --metric, or named by a target."""
        from hopbench.eval.metrics import asked_metrics
        from hopbench.eval.runs.targets import COSTS, Target

        limited = (Target.parse(text).metric for text in self.targets)
        return asked_metrics([*self.metrics, *(name for name in limited if name not in COSTS)])

    def fitted_on(self) -> list[FittedOn]:
        """The sets on which the labels' changes were tuned: as best.yaml writes them, or named as `--dataset` is."""
        return [FittedOn.read(text) or fitted_on(load_benchmark(text)) for text in self.tuned_on]

    def __post_init__(self) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot call the model."""
        self.spread.check(self.prefect, self.models.llm)
        if self.functions and self.runner not in ("", "threads"):
            raise InputError(
                f"--runner {self.runner} has workers in other processes, which lack {', '.join(self.functions)}: "
                "choose threads or no runner, or serve the function over HTTP (--retriever NAME=URL)"
            )

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

    def absolute(self) -> Self:
        """The options with paths that mean the same from a worker's folder, those of foreign runs too."""
        from hopbench.flows.settings.foreign import absolute_run

        return replace(super().absolute(), runs=tuple(map(absolute_run, self.runs)))

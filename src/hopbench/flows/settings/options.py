"""The settings of a run, and of the workers that its trials run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.setting import EXECUTION, STRATEGIES, Commas, Settings, flag
from hopbench.flows.settings.values import RUNNERS
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.runs.targets import Target
    from hopbench.eval.types import BenchmarkQuestion
    from hopbench.retrieval.fitted import FittedOn
    from hopbench.retrieval.strategies.base import Strategy


def runner_parts(runner: str) -> tuple[str, str]:
    """Split a runner into its kind and address: `dask=HOST:PORT` → (`dask`, `HOST:PORT`)."""
    kind, _, address = runner.partition("=")
    if kind not in RUNNERS:
        raise UnknownNameError("runner", kind, RUNNERS)
    if address and kind != "dask":
        raise InputError(f"--runner {runner}: only dask takes an address, such as dask=127.0.0.1:8786")
    return kind, address


class WorkerOptions(Settings):
    """The task runner and workers that trials run on (none: this process), and the questions per batch."""

    runner: str = flag(
        "",
        "Where trials run: threads, processes, dask, dask=HOST:PORT (default: one after another).",
        group=EXECUTION,
        values="runners",
    )
    workers: int | None = flag(None, "Workers of --runner (default: the processors).", ge=1, group=EXECUTION)
    batch: int | None = flag(None, "Questions in a batch (default: what memory allows, ≤ 1000).", ge=1, group=EXECUTION)
    no_prefect: bool = flag(
        False, "Run the same functions without a Prefect server.", group=EXECUTION, name="--no-prefect", form=False
    )

    @property
    def processes(self) -> int:
        """How many processes may divide a batch: one where a runner has several workers already."""
        from hopbench.retrieval.support.processes import usable_processors

        return 1 if self.runner else usable_processors()

    def check_workers(self, llm: str | None) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot call the model."""
        if self.runner:
            kind, _ = runner_parts(self.runner)
            if self.no_prefect:
                raise InputError(f"--runner {self.runner} is one of Prefect's task runners: leave out --no-prefect")
            if llm is not None and kind != "threads":
                raise InputError(
                    f"--runner {self.runner} has workers that share no model's pace and budget: with --llm, choose "
                    "--runner threads or none"
                )
        elif self.workers is not None:
            raise InputError(f"--workers {self.workers}: of which runner? Add --runner {'|'.join(RUNNERS)}")


class RunOptions(GraphOptions, ModelOptions, WorkerOptions):
    """A run: which strategies over which questions, and where its files go.

    `command` is recorded as the run's origin; `functions` are retrievers of this process, by label.
    """

    out: Path
    strategies: Commas = flag(
        "all",
        "Labels: NAME, NAME:tuned, NAME[field=value]; all; all:tuned.",
        group=STRATEGIES,
        values="labels",
        commas=True,
    )
    changes: tuple[str, ...] = flag(
        (), "A change of a parameter, strategy.field=value.", group=STRATEGIES, values="changes", name="--set"
    )
    runs: tuple[str, ...] = flag(
        (),
        "NAME=FILE: a label whose rankings were made elsewhere: a TREC run, JSON rankings or scores, or the folder of"
        " an earlier run.",
        group=STRATEGIES,
    )
    retrievers: tuple[str, ...] = flag(
        (),
        "NAME=URL: a label that an HTTP endpoint ranks (docs/your-retriever.md).",
        group=STRATEGIES,
        name="--retriever",
    )
    tuned_on: tuple[str, ...] = flag(
        (),
        "A data set on which the changes of --set were tuned, so that scores on its questions say so; a sweep's "
        "best.yaml names it.",
        group=STRATEGIES,
        values="datasets",
    )
    ragas: bool = flag(
        True,
        "RAGAS's id-based and non-LLM metrics: some 5 s to load RAGAS, then 0.7 s for each 500 questions of a label.",
        group=STRATEGIES,
        name="--ragas/--no-ragas",
    )
    metrics: tuple[str, ...] = flag(
        (),
        "A metric to measure beside the usual ones: recall@7, a plug-in's success@5.",
        group=STRATEGIES,
        values="metrics",
        name="--metric",
    )
    targets: tuple[str, ...] = flag(
        (),
        "A limit to keep, 'METRIC>=NUMBER' or 'LABEL METRIC<=NUMBER' (>=, <=, >, <); a label that misses it ends the "
        "command with exit code 3.",
        group=STRATEGIES,
        name="--target",
    )
    dry_run: bool = flag(False, "Estimate calls, tokens, price and time; call no model.", group=EXECUTION, form=False)
    seed: int = flag(0, "Seed of samples and resampling.", ge=0, group=EXECUTION)
    command: str = "hopbench run"
    functions: Mapping[str, Any] = {}

    @property
    def models(self) -> ModelOptions:
        """Reader and judge: settings of the run itself."""
        return self

    @property
    def prefect(self) -> bool:
        """Whether the run is a Prefect flow."""
        return not self.no_prefect

    def labels(self) -> dict[str, Strategy]:
        """The labels of the run with their strategies: ours, then those of --runs, --retriever and `functions`."""
        from hopbench.retrieval.strategies.registry import resolve  # loads scipy

        if not (self.runs or self.retrievers or self.functions):
            return resolve(self.strategies, self.changes)
        from hopbench.flows.settings.foreign import foreign_labels

        foreign, changes = foreign_labels(self.runs, self.retrievers, self.functions, self.changes)
        return {**resolve(self.strategies, changes), **foreign}

    @property
    def selection(self) -> tuple[str, ...]:
        """The selection: nightly runs with the same selection are compared."""
        return (self.strategies, *self.changes, *self.runs, *self.retrievers, *self.functions)

    def asked_metrics(self) -> tuple[str, ...]:
        """What is measured beside the metrics that run by default: asked for by --metric, or named by a target."""
        from hopbench.eval.metrics import requested_metrics
        from hopbench.eval.runs.targets import COSTS, Target

        limited = (Target.parse(text).metric for text in self.targets)
        return requested_metrics([*self.metrics, *(name for name in limited if name not in COSTS)])

    def fitted_on(self) -> list[FittedOn]:
        """The sets on which the labels' changes were tuned: as best.yaml writes them, or named as `--dataset` is."""
        from hopbench.eval.benchmarks import load_benchmark
        from hopbench.eval.types import fitted_on
        from hopbench.retrieval.fitted import FittedOn

        return [FittedOn.read(text) or fitted_on(load_benchmark(text)) for text in self.tuned_on]

    @model_validator(mode="after")
    def _workers_fit(self) -> Self:
        if self.runner or self.workers:
            self.check_workers(self.llm)
        if self.functions and self.runner not in ("", "threads"):
            raise InputError(
                f"--runner {self.runner} has workers in other processes, which lack {', '.join(self.functions)}: "
                "choose threads or no runner, or serve the function over HTTP (--retriever NAME=URL)"
            )
        return self

    def checked_targets(
        self, labels: Sequence[str], questions: Sequence[BenchmarkQuestion] | None = None
    ) -> list[Target]:
        """The targets for a run of these labels; refuses what is no target, and what the run will not measure."""
        from hopbench.eval.runs.targets import parse_targets, refuse_unmeasured

        targets = parse_targets(self.targets, labels)
        judged = () if self.judge is None else self.judged
        refuse_unmeasured(targets, ragas=self.ragas, judged=judged, reader=self.llm is not None, questions=questions)
        return targets

    def absolute(self) -> Self:
        """The options with paths that mean the same from a worker's folder, those of foreign runs too."""
        named = [text.partition("=")[::2] for text in self.runs]
        return super().absolute().changed(runs=tuple(f"{name}={Path(place).absolute()}" for name, place in named))

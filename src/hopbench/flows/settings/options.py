"""The options of a run, declared once for flags, the config file and flows' parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.setting import EXECUTION, MODELS, STRATEGIES, Setting
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.runs.targets import Target
    from hopbench.eval.types import BenchmarkQuestion
    from hopbench.retrieval.external import Function
    from hopbench.retrieval.fitted import FittedOn
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
        from hopbench.retrieval.support.processes import usable_processors

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


LISTS = ("changes", "tuned_on", "targets", "runs", "retrievers", "metrics")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of `run` and `nightly` beside those of the graph (`GraphOptions`)."""

    strategies: Annotated[
        str,
        Setting(
            "Labels: NAME, NAME:tuned, NAME[field=value]; all; all:tuned.",
            values="labels",
            group=STRATEGIES,
            commas=True,
        ),
    ] = "all"
    changes: Annotated[
        list[str] | None,
        Setting("A change of a parameter, strategy.field=value.", values="changes", group=STRATEGIES, flag="--set"),
    ] = None
    runs: Annotated[
        list[str] | None,
        Setting(
            "NAME=FILE: a label whose rankings were made elsewhere: a TREC run, JSON rankings or scores, or the "
            "folder of an earlier run.",
            group=STRATEGIES,
        ),
    ] = None
    retrievers: Annotated[
        list[str] | None,
        Setting(
            "NAME=URL: a label that an HTTP endpoint ranks (docs/your-retriever.md).",
            group=STRATEGIES,
            flag="--retriever",
        ),
    ] = None
    tuned_on: Annotated[
        list[str] | None,
        Setting(
            "A data set on which the changes of --set were tuned, so that scores on its questions say so; a "
            "sweep's best.yaml names it.",
            values="datasets",
            group=STRATEGIES,
        ),
    ] = None
    ragas: Annotated[
        bool,
        Setting(
            "RAGAS's id-based and non-LLM metrics: some 5 s to load RAGAS, then 0.7 s for each 500 questions "
            "of a label.",
            group=STRATEGIES,
            flag="--ragas/--no-ragas",
        ),
    ] = True
    metrics: Annotated[
        list[str] | None,
        Setting(
            "A metric to measure beside the usual ones: recall@7, a plug-in's success@5.",
            values="metrics",
            group=STRATEGIES,
            flag="--metric",
        ),
    ] = None
    targets: Annotated[
        list[str] | None,
        Setting(
            "A limit to keep, 'METRIC>=NUMBER' or 'LABEL METRIC<=NUMBER' (>=, <=, >, <); a label that misses it "
            "ends the command with exit code 3.",
            group=STRATEGIES,
            flag="--target",
        ),
    ] = None
    judge: Annotated[
        str | None, Setting("The judge's model, MODEL[@URL] (JUDGE_API_KEY, else OPENAI_API_KEY).", group=MODELS)
    ] = None
    judge_on: Annotated[
        str,
        Setting("all labels, or finalists[:N]: the best N by the free metrics (3).", values="judge_on", group=MODELS),
    ] = "all"
    judge_profile: Annotated[
        str,
        Setting(
            "full: RAGAS's own prompts; compact: short ones for local models.", values="judge_profiles", group=MODELS
        ),
    ] = "full"
    judge_metrics: Annotated[
        str, Setting("Judged metrics; all.", values="judge_metrics", group=MODELS, commas=True)
    ] = "all"
    repeats: Annotated[
        int, Setting("How often each judgement is repeated; more than 1 shows its spread.", low=1, group=MODELS)
    ] = 1
    budget: Annotated[
        float | None,
        Setting(
            "US dollars at which to stop (exit 4); the same command resumes.",
            above=0,
            flag_limits=False,
            group=MODELS,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Setting("Estimate calls, tokens, price and time; call no model.", group=EXECUTION, page=False),
    ] = False
    seed: Annotated[int, Setting("Seed of samples and resampling.", low=0, group=EXECUTION)] = 0
    no_prefect: Annotated[
        bool, Setting("Run the same functions without a Prefect server.", group=EXECUTION, page=False)
    ] = False
    runner: Annotated[
        str,
        Setting(
            "Where trials run: threads, processes, dask, dask=HOST:PORT (default: one after another).",
            values="runners",
            group=EXECUTION,
        ),
    ] = ""
    workers: Annotated[
        int | None, Setting("Workers of --runner (default: the processors).", low=1, group=EXECUTION)
    ] = None
    batch: Annotated[
        int | None, Setting("Questions in a batch (default: what memory allows, ≤ 1000).", low=1, group=EXECUTION)
    ] = None


def run_options(given: Mapping[str, Any], out: Path, command: str) -> RunOptions:
    """The options of a run from the values of `RunSettings` and `GraphOptions`; `command` is recorded as its origin."""
    from hopbench.flows.settings.models import ModelOptions

    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    lists = {name: values[name] or () for name in LISTS}
    models: dict[str, Any] = {field.name: values[field.name] for field in fields(ModelOptions)}
    models["judge_metrics"] = metric_names(values["judge_metrics"])
    made = {"out": out, "prefect": not values["no_prefect"], "models": ModelOptions(**models), **lists}
    same = {field.name: values[field.name] for field in fields(RunOptions) if field.name in values}
    return RunOptions(**same | made, command=command)


def metric_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list; none for `all`."""
    return () if text == "all" else tuple(name for part in text.split(",") if (name := part.strip()))

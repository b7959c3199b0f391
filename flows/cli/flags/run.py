"""The flags that `hopbench run` and `hopbench nightly` share, and the options that they make."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import EXECUTION, STRATEGIES, Config, option
from hopbench.flows.cli.flags.shared import (
    Batch,
    BudgetUsd,
    DryRun,
    Judge,
    JudgeMetrics,
    JudgeOn,
    JudgeProfile,
    NoPrefect,
    Repeats,
    Runner,
    Workers,
    metric_names,
)

if TYPE_CHECKING:
    from hopbench.flows.settings.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The flags of `run` and `nightly` beside those of the graph (`GraphOptions`)."""

    strategies: Annotated[
        str, option(STRATEGIES, help="Labels, comma-separated; all; all:tuned.", complete=complete.labels)
    ] = "all"
    changes: Annotated[
        list[str] | None,
        option(STRATEGIES, "--set", help="strategy.field=value; may be repeated.", complete=complete.changes),
    ] = None
    runs: Annotated[
        list[str] | None,
        option(
            STRATEGIES,
            "--runs",
            help="NAME=FILE: a label whose rankings were made elsewhere: a TREC run, JSON rankings, or the folder of "
            "an earlier run. May be repeated.",
        ),
    ] = None
    retrievers: Annotated[
        list[str] | None,
        option(
            STRATEGIES,
            "--retriever",
            help="NAME=URL: a label that an HTTP endpoint ranks (docs/your-retriever.md). May be repeated.",
        ),
    ] = None
    tuned_on: Annotated[
        list[str] | None,
        option(
            STRATEGIES,
            help="A data set on which the changes of --set were tuned, so that scores on its questions say so; a "
            "sweep's best.yaml names it. May be repeated.",
            complete=complete.datasets,
        ),
    ] = None
    ragas: Annotated[
        bool,
        option(
            STRATEGIES,
            "--ragas/--no-ragas",
            help="RAGAS's id-based and non-LLM metrics: some 5 s to load RAGAS, then .7 s for each 500 questions "
            "of a label.",
        ),
    ] = True
    metrics: Annotated[
        list[str] | None,
        option(
            STRATEGIES,
            "--metric",
            help="A metric to measure beside the usual ones: recall@7, a plug-in's success@5. May be repeated.",
            complete=complete.metrics,
        ),
    ] = None
    targets: Annotated[
        list[str] | None,
        option(
            STRATEGIES,
            "--target",
            help="A limit to keep, 'METRIC>=NUMBER' or 'LABEL METRIC<=NUMBER' (>=, <=, >, <); a label that misses it "
            "ends the command with exit code 3. May be repeated.",
        ),
    ] = None
    judge: Judge = None
    judge_on: JudgeOn = "all"
    judge_profile: JudgeProfile = "full"
    judge_metrics: JudgeMetrics = "all"
    repeats: Repeats = 1
    budget: BudgetUsd = None
    dry_run: DryRun = False
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of samples and resampling.")] = 0
    no_prefect: NoPrefect = False
    runner: Runner = ""
    workers: Workers = None
    batch: Batch = None
    config: Config = None


def run_options(command: str, out: Path, flags: Mapping[str, Any]) -> RunOptions:
    """The options of a run from the `flags` of `RunFlags` and `GraphOptions`; those of the same name are passed on."""
    from hopbench.flows.settings.models import ModelOptions
    from hopbench.flows.settings.options import RunOptions

    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in flags.items()}
    lists = {name: given[name] or () for name in ("changes", "tuned_on", "targets", "runs", "retrievers", "metrics")}
    models: dict[str, Any] = {field.name: given[field.name] for field in fields(ModelOptions)}
    models["judge_metrics"] = metric_names(given["judge_metrics"])
    made = {"out": out, "prefect": not given["no_prefect"], "models": ModelOptions(**models), **lists}
    same = {field.name: given[field.name] for field in fields(RunOptions) if field.name in given}
    return RunOptions(**same | made, command=command_line(command))


def estimate(options: RunOptions) -> None:
    """Print what the models of a run will cost, instead of running it."""
    from hopbench.flows.cli.printing.estimate import print_estimate
    from hopbench.flows.run.estimate import estimate_run

    print_estimate(estimate_run(options))


def command_line(name: str) -> str:
    """The command as it was typed, without the webhook's URL, which may carry a token."""
    shown: list[str] = []
    for word in sys.argv[2:]:
        hidden = shown[-1:] == ["--webhook"] or word.startswith("--webhook=")
        shown.append(word.partition("=")[0] + "=…" if hidden and "=" in word[:10] else "…" if hidden else word)
    return " ".join(["hopbench", name, *shown])

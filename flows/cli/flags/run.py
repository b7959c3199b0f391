"""The flags that `hopbench run` and `hopbench nightly` share, and the options that they make."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.graph import Config, NoPrefect, StoredGraphFlags
from hopbench.flows.cli.flags.models import (
    BudgetUsd,
    DryRun,
    Judge,
    JudgeMetrics,
    JudgeOn,
    JudgeProfile,
    Repeats,
    metric_names,
)
from hopbench.flows.cli.flags.panels import EXECUTION, STRATEGIES, option
from hopbench.flows.cli.flags.runner import Batch, Runner, Workers

if TYPE_CHECKING:
    from hopbench.flows.settings.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class RunFlags(StoredGraphFlags):
    """What a run may be told beside its benchmark, its folder and whether RAGAS's metrics are wanted."""

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

    def options(self, command: str, *, dataset: str, out: Path) -> RunOptions:
        """The run's options; a flag is the option of the same name where nothing else is said here."""
        from hopbench.flows.settings.models import ModelOptions
        from hopbench.flows.settings.options import RunOptions

        said = {
            "dataset": dataset,
            "out": out,
            "changes": tuple(self.changes or ()),
            "tuned_on": tuple(self.tuned_on or ()),
            "runs": tuple(self.runs or ()),
            "retrievers": tuple(self.retrievers or ()),
            "targets": tuple(self.targets or ()),
            "prefect": not self.no_prefect,
            "models": ModelOptions(**self.alike(ModelOptions, judge_metrics=metric_names(self.judge_metrics))),
            "command": command_line(command),
        }
        return RunOptions(**self.alike(RunOptions, **said))


def estimate(options: RunOptions) -> None:
    """Print what the models of a run will take, in place of the run."""
    from hopbench.flows.cli.printing.estimate import print_estimate
    from hopbench.flows.estimate.run import estimate_run

    print_estimate(estimate_run(options))


def command_line(name: str) -> str:
    """The command as it was typed, without what is nobody's business: a webhook's URL may carry a token."""
    shown: list[str] = []
    for word in sys.argv[2:]:
        hidden = shown[-1:] == ["--webhook"] or word.startswith("--webhook=")
        shown.append(word.partition("=")[0] + "=…" if hidden and "=" in word[:10] else "…" if hidden else word)
    return " ".join(["hopbench", name, *shown])

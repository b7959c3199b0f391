"""The settings of a run beside those of its graph: flags of `run` and `nightly`, parameters of the flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.settings.setting import EXECUTION, MODELS, STRATEGIES, Setting

if TYPE_CHECKING:
    from hopbench.flows.settings.options import RunOptions

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
            "RAGAS's id-based and non-LLM metrics: some 5 s to load RAGAS, then .7 s for each 500 questions "
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
    from hopbench.flows.settings.options import RunOptions

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

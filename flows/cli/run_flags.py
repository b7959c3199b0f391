"""The flags that `hopbench run` and `hopbench nightly` share, and the options that they make."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.graph_flags import Config, Embedder, Extractor, NoPrefect, Store, Triples
from flows.cli.model_flags import (
    BudgetUsd,
    DryRun,
    Gleaning,
    Judge,
    JudgeMetrics,
    JudgeOn,
    JudgeProfile,
    Llm,
    Repeats,
    metric_names,
)
from flows.cli.runner_flags import Batch, Runner, Workers
from flows.models import ModelOptions
from flows.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """What a run may be told beside its benchmark, its folder and whether RAGAS's metrics are wanted."""

    strategies: Annotated[str, typer.Option(help="Labels, comma-separated; all; all:tuned.")] = "all"
    changes: Annotated[list[str] | None, typer.Option("--set", help="strategy.field=value; may be repeated.")] = None
    tuned_on: Annotated[
        list[str] | None,
        typer.Option(
            help="A data set on which the changes of --set were tuned, so that scores on its questions say so; a "
            "sweep's best.yaml names it. May be repeated."
        ),
    ] = None
    store: Store = "kglite"
    embedder: Embedder = "wordllama"
    extractor: Extractor = "rules"
    triples: Triples = None
    mapping: Annotated[
        Path | None,
        typer.Option(help="YAML with the names of a Neo4j graph built elsewhere, which is only read (docs/neo4j.md)."),
    ] = None
    neo4j_vector_index: Annotated[
        bool,
        typer.Option(
            "--neo4j-vector-index",
            help="Search chunks by Neo4j's own vector index: approximate, so rankings may differ.",
        ),
    ] = False
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions (the whole corpus stays).")] = (
        None
    )
    similar_top_k: Annotated[int | None, typer.Option(help="SIMILAR_TO edges of a chunk (default 10).")] = None
    similar_floor: Annotated[float | None, typer.Option(help="Their least similarity (default 0.3).")] = None
    max_tokens: Annotated[int | None, typer.Option(help="Longer passages are split (default 1200).")] = None
    llm: Llm = None
    gleaning: Gleaning = 0
    judge: Judge = None
    judge_on: JudgeOn = "all"
    judge_profile: JudgeProfile = "full"
    judge_metrics: JudgeMetrics = "all"
    repeats: Repeats = 1
    budget: BudgetUsd = None
    dry_run: DryRun = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of samples and resampling.")] = 0
    no_prefect: NoPrefect = False
    runner: Runner = ""
    workers: Workers = None
    batch: Batch = None
    config: Config = None

    def options(self, command: str, *, dataset: str, out: Path, ragas: bool) -> RunOptions:
        """The run's options; a flag is the option of the same name where nothing else is said here."""
        said = {
            "dataset": dataset,
            "out": out,
            "ragas": ragas,
            "changes": tuple(self.changes or ()),
            "tuned_on": tuple(self.tuned_on or ()),
            "prefect": not self.no_prefect,
            "models": ModelOptions(**self._alike(ModelOptions, judge_metrics=metric_names(self.judge_metrics))),
            "command": command_line(command),
        }
        return RunOptions(**self._alike(RunOptions, **said))

    def _alike(self, options: type[Any], **said: object) -> Mapping[str, Any]:
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {one.name: given[one.name] for one in fields(options) if one.name in given} | said


def estimate(options: RunOptions) -> None:
    """Print what the models of a run will take, in place of the run."""
    from flows.cli.estimate import print_estimate
    from flows.estimate import estimate_run

    print_estimate(estimate_run(options))


def command_line(name: str) -> str:
    """The command as it was typed, without what is nobody's business: a webhook's URL may carry a token."""
    shown: list[str] = []
    for word in sys.argv[2:]:
        hidden = shown[-1:] == ["--webhook"] or word.startswith("--webhook=")
        shown.append(word.partition("=")[0] + "=…" if hidden and "=" in word[:10] else "…" if hidden else word)
    return " ".join(["hopbench", name, *shown])

"""`hopbench run` and `hopbench nightly`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.config import read_config
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
from flows.home import Home
from flows.models import ModelOptions
from flows.options import RunOptions

if TYPE_CHECKING:
    from flows.evaluate import Finished

Config = Annotated[
    Path | None,
    typer.Option("--config", callback=read_config, is_eager=True, help="YAML file with any of these flags; flags win."),
]
Dataset = Annotated[str, typer.Option(help="A shipped benchmark's name, a folder, an official file or a Hub name.")]
Strategies = Annotated[str, typer.Option(help="Labels, comma-separated; all; all:tuned.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="strategy.field=value; may be repeated.")]
Store = Annotated[str, typer.Option(help="Where the graph is kept: kglite (a file), neo4j (NEO4J_URI or make neo4j).")]
Embedder = Annotated[str, typer.Option(help="wordllama, minilm, fastembed:MODEL or openai:MODEL.")]
Extractor = Annotated[str, typer.Option(help="Who reads entities and relations: rules, spacy, or llm (with --llm).")]
Triples = Annotated[Path | None, typer.Option(help="Ready triples (JSONL) in place of the extractor.")]
Mapping = Annotated[
    Path | None,
    typer.Option(help="YAML with the names of a Neo4j graph built elsewhere, which is only read (docs/neo4j.md)."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N questions (the whole corpus stays).")]
Seed = Annotated[int, typer.Option(help="Seed of samples and resampling.")]
NoPrefect = Annotated[bool, typer.Option("--no-prefect", help="Run the same functions without a Prefect server.")]


def run_command(
    dataset: Dataset,
    out: Annotated[Path, typer.Option(help="Folder for results.json, questions.parquet and report.html.")],
    strategies: Strategies = "all",
    changes: Changes = None,
    store: Store = "kglite",
    embedder: Embedder = "wordllama",
    extractor: Extractor = "rules",
    triples: Triples = None,
    mapping: Mapping = None,
    limit: Limit = None,
    ragas: Annotated[bool, typer.Option("--ragas/--no-ragas", help="RAGAS id-based and non-LLM metrics.")] = False,
    llm: Llm = None,
    gleaning: Gleaning = 0,
    judge: Judge = None,
    judge_on: JudgeOn = "all",
    judge_profile: JudgeProfile = "full",
    judge_metrics: JudgeMetrics = "all",
    repeats: Repeats = 1,
    budget: BudgetUsd = None,
    dry_run: DryRun = False,
    seed: Seed = 0,
    no_prefect: NoPrefect = False,
    config: Config = None,
) -> None:
    """Run strategies over a benchmark: rank, score, compare, track, report."""
    options = RunOptions(
        dataset=dataset,
        store=store,
        embedder=embedder,
        extractor=extractor,
        triples=triples,
        mapping=mapping,
        limit=limit,
        out=out,
        strategies=strategies,
        changes=tuple(changes or ()),
        ragas=ragas,
        seed=seed,
        prefect=not no_prefect,
        llm=llm,
        gleaning=gleaning,
        models=ModelOptions(
            llm=llm,
            judge=judge,
            judge_on=judge_on,
            judge_profile=judge_profile,
            judge_metrics=metric_names(judge_metrics),
            repeats=repeats,
            budget=budget,
        ),
        command=_command("run"),
    )
    if dry_run:
        _estimate(options)
        return
    _execute(options, "evaluate")


def nightly_command(
    dataset: Dataset = "hopworld",
    out: Annotated[Path | None, typer.Option(help="Folder for the files of this night (default: under home).")] = None,
    strategies: Strategies = "all",
    changes: Changes = None,
    store: Store = "kglite",
    embedder: Embedder = "wordllama",
    extractor: Extractor = "rules",
    triples: Triples = None,
    mapping: Mapping = None,
    limit: Limit = None,
    ragas: Annotated[bool, typer.Option("--ragas/--no-ragas", help="RAGAS id-based and non-LLM metrics.")] = True,
    llm: Llm = None,
    gleaning: Gleaning = 0,
    judge: Judge = None,
    judge_on: JudgeOn = "all",
    judge_profile: JudgeProfile = "full",
    judge_metrics: JudgeMetrics = "all",
    repeats: Repeats = 1,
    budget: BudgetUsd = None,
    dry_run: DryRun = False,
    seed: Seed = 0,
    no_prefect: NoPrefect = False,
    config: Config = None,
) -> None:
    """Build if needed, run all strategies, score, track, report, compare with the last good run."""
    night = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    options = RunOptions(
        dataset=dataset,
        store=store,
        embedder=embedder,
        extractor=extractor,
        triples=triples,
        mapping=mapping,
        limit=limit,
        out=out or Home.resolve().root / "nightly" / f"{Path(dataset).name}-{night}",
        strategies=strategies,
        changes=tuple(changes or ()),
        ragas=ragas,
        seed=seed,
        prefect=not no_prefect,
        llm=llm,
        gleaning=gleaning,
        models=ModelOptions(
            llm=llm,
            judge=judge,
            judge_on=judge_on,
            judge_profile=judge_profile,
            judge_metrics=metric_names(judge_metrics),
            repeats=repeats,
            budget=budget,
        ),
        command=_command("nightly"),
    )
    if dry_run:
        _estimate(options)
        return
    finished = _execute(options, "nightly")
    from flows.nightly import judge as compare_nights
    from flows.nightly import refuse_regression

    verdict = compare_nights(finished.evaluation, options.out, Home.resolve().root / "nightly")
    then = (
        f"compared with {verdict.previous.name}" if verdict.previous else "first good night: recorded as the baseline"
    )
    typer.echo(then)
    refuse_regression(verdict)


def _execute(options: RunOptions, flow: str) -> Finished:
    from flows.cli.progress import terminal_progress
    from flows.cli.table import print_finished
    from flows.evaluate import refuse_incomplete, run

    with terminal_progress() as progress:
        finished = run(options, flow, progress)
    print_finished(finished, options)
    refuse_incomplete(finished)
    return finished


def _estimate(options: RunOptions) -> None:
    from flows.cli.estimate import print_estimate
    from flows.estimate import estimate_run

    print_estimate(estimate_run(options))


def _command(name: str) -> str:
    return " ".join(["hopbench", name, *sys.argv[2:]])

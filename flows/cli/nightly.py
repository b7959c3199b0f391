"""`hopbench nightly`: a run that is compared with the nights before it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from flows.cli.run import (
    Batch,
    Changes,
    Config,
    Dataset,
    Embedder,
    Extractor,
    Limit,
    Mapping,
    NoPrefect,
    Runner,
    Seed,
    Store,
    Strategies,
    Triples,
    VectorIndex,
    Workers,
    command_line,
    estimate,
)
from flows.models import ModelOptions
from flows.options import RunOptions

if TYPE_CHECKING:
    from flows.nightly.options import NightlyOptions


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
    neo4j_vector_index: VectorIndex = False,
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
    runner: Runner = "",
    workers: Workers = None,
    batch: Batch = None,
    keep: Annotated[
        int | None, typer.Option(help="Nights of this benchmark to keep; older ones go, with their graphs and files.")
    ] = None,
    latency_factor: Annotated[
        float, typer.Option(help="A label whose p50 latency grew by more than this is a regression.")
    ] = 3.0,
    webhook: Annotated[
        str | None,
        typer.Option(envvar="HOPBENCH_WEBHOOK", show_envvar=True, help="URL that is told of regressions and failures."),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take tonight as the new baseline, whatever it shows.")
    ] = False,
    config: Config = None,
) -> None:
    """Build if needed, run all strategies, score, track, report, compare with the last good night."""
    from flows.nightly.options import NightlyOptions

    night = NightlyOptions(keep=keep, latency_factor=latency_factor, webhook=webhook, accept=accept)
    options = RunOptions(
        dataset=dataset,
        store=store,
        embedder=embedder,
        extractor=extractor,
        triples=triples,
        mapping=mapping,
        neo4j_vector_index=neo4j_vector_index,
        limit=limit,
        out=out or Path(),
        strategies=strategies,
        changes=tuple(changes or ()),
        ragas=ragas,
        seed=seed,
        prefect=not no_prefect,
        runner=runner,
        workers=workers,
        batch=batch,
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
        command=command_line("nightly"),
    )
    if dry_run:
        estimate(options)
        return
    _execute(options, night, out)


def _execute(options: RunOptions, night: NightlyOptions, out: Path | None) -> None:
    from flows.cli.progress import terminal_progress
    from flows.cli.table import print_finished
    from flows.nightly.run import nightly

    with terminal_progress() as progress:
        done = nightly(options, night, progress, out)
    print_finished(done.finished, done.out)
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)
    done.refuse()  # its message holds the lines
    for line in done.lines:
        typer.echo(line)

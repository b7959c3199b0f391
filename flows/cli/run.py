"""`hopbench run`, and the flags that it shares with `hopbench nightly`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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
from flows.models import ModelOptions
from flows.options import RunOptions

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
VectorIndex = Annotated[
    bool,
    typer.Option(
        "--neo4j-vector-index", help="Search chunks by Neo4j's own vector index: approximate, so rankings may differ."
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N questions (the whole corpus stays).")]
Seed = Annotated[int, typer.Option(help="Seed of samples and resampling.")]
Runner = Annotated[
    str, typer.Option(help="Where trials run: threads, processes, dask, dask:HOST:PORT (default: one after another).")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Workers of --runner (default: the processors).")]
Batch = Annotated[int | None, typer.Option(min=1, help="Questions in a batch (default: what memory allows, ≤ 1000).")]
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
    neo4j_vector_index: VectorIndex = False,
    limit: Limit = None,
    ragas: Annotated[bool, typer.Option("--ragas/--no-ragas", help="RAGAS id-based and non-LLM metrics.")] = False,
    similar_top_k: Annotated[int | None, typer.Option(help="SIMILAR_TO edges of a chunk (default 10).")] = None,
    similar_floor: Annotated[float | None, typer.Option(help="Their least similarity (default 0.3).")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longer passages are split (default 1200).")] = None,
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
        neo4j_vector_index=neo4j_vector_index,
        limit=limit,
        out=out,
        strategies=strategies,
        changes=tuple(changes or ()),
        ragas=ragas,
        seed=seed,
        prefect=not no_prefect,
        similar_top_k=similar_top_k,
        similar_floor=similar_floor,
        max_tokens=max_tokens,
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
        command=command_line("run"),
    )
    if dry_run:
        estimate(options)
        return
    _execute(options)


def _execute(options: RunOptions) -> None:
    from flows.cli.progress import terminal_progress
    from flows.cli.table import print_finished
    from flows.completeness import refuse_incomplete
    from flows.evaluate import run

    with terminal_progress() as progress:
        finished = run(options, "evaluate", progress)
    print_finished(finished, options.out)
    refuse_incomplete(finished)


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

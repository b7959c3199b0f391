"""`hopbench sweep FILE`: search a space of configurations; what is finished is kept and reused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopbench.flows.cli.flags.declare import EXECUTION, OUTPUT, argument, option
from hopbench.flows.cli.flags.shared import (
    Batch,
    BudgetUsd,
    CompletionTokens,
    Judge,
    Llm,
    MinGrade,
    NoPrefect,
    ReasoningEffort,
    Runner,
    Strict,
    Workers,
)
from hopbench.retrieval.support.errors import IncompleteError, InputError

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.flows.settings.options import WorkerOptions


def sweep_command(
    file: Annotated[
        Path | None, argument(help="The sweep: data sets, strategies, values (YAML).", metavar="FILE")
    ] = None,
    out: Annotated[Path | None, option(OUTPUT, help="Folder for trials.parquet, report.html and best.yaml.")] = None,
    dry_run: Annotated[
        bool, option(EXECUTION, "--dry-run", help="Check everything; print trials, rebuilds and an estimated time.")
    ] = False,
    champion: Annotated[
        bool, option(OUTPUT, "--champion", help="Name the winner the champion of the benchmark under report_on.")
    ] = False,
    runner: Runner = "",
    workers: Workers = None,
    batch: Batch = None,
    no_prefect: NoPrefect = False,
    llm: Llm = None,
    judge: Judge = None,
    reasoning_effort: ReasoningEffort = None,
    completion_tokens: CompletionTokens = None,
    budget: BudgetUsd = None,
    min_grade: MinGrade = None,
    strict: Strict = None,
    schema: Annotated[bool, option(OUTPUT, "--schema", help="Print the JSON Schema of sweep files.")] = False,
) -> None:
    """Search a space of configurations (docs/sweeps.md); finished trials are kept and reused.

    Flags that name a field of the file, such as --llm, --budget and --min-grade, replace it.
    """
    if schema:
        from hopbench.eval.sweep.file import schema as sweep_schema

        typer.echo(json.dumps(sweep_schema(), indent=2))
        return
    if file is None:
        raise InputError("FILE is missing: name a sweep file (flows/sweeps has examples), or ask for its --schema")
    if out is None and not dry_run:
        raise InputError("--out is missing: name a folder for trials.parquet, or ask with --dry-run what would run")
    from hopbench.eval.sweep.plan import read_sweep
    from hopbench.flows.settings.options import WorkerOptions

    flags = {
        "llm": llm,
        "judge": judge,
        "reasoning_effort": reasoning_effort,
        "completion_tokens": completion_tokens,
        "budget": budget,
        "min_grade": min_grade,
        "strict": strict,
    }
    plan = read_sweep(file, {name: value for name, value in flags.items() if value is not None})
    spread = WorkerOptions(runner, workers, batch)
    spread.check(not no_prefect, plan.content.llm)
    typer.echo(_extent(plan))
    if dry_run or out is None:
        _estimate(plan)
    else:
        _sweep(plan, out, spread, prefect=not no_prefect, champion=champion)


def _sweep(plan: SweepPlan, out: Path, spread: WorkerOptions, *, prefect: bool, champion: bool) -> None:
    from hopbench.eval.types import MAX_FAILED
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.cli.sweep.printing import print_swept
    from hopbench.flows.sweeps.flow import sweep

    with terminal_progress() as progress:
        swept = sweep(plan, out, prefect=prefect, champion=champion, progress=progress, spread=spread)
    print_swept(swept)
    if swept.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed, or were not answered or judged, in "
            f"{len(swept.incomplete)} trials: these are not kept, and the same command does again what is missing"
        )


def _extent(plan: SweepPlan) -> str:
    """How many trials there are, and of what."""
    each = [
        f"{plan.configurations} configurations",
        f"{len(plan.datasets)} data sets ({', '.join(Path(name).name for name in plan.datasets)})",
        *([f"{len(plan.content.all_seeds)} seeds"] if len(plan.content.all_seeds) > 1 else []),
        *([f"{plan.content.repeats} repeats"] if plan.content.repeats > 1 else []),
    ]
    return f"{plan.trials} trials: {' × '.join(each)}"


def _estimate(plan: SweepPlan) -> None:
    from hopbench.flows.cli.printing.estimate import print_estimate
    from hopbench.flows.settings.home import Home
    from hopbench.flows.sweeps.estimate import estimate
    from hopbench.flows.sweeps.inputs import load_benchmarks, open_embedders, warnings_of_plan
    from hopbench.flows.sweeps.models import estimate_models

    benchmarks = load_benchmarks(plan)
    open_embedders(plan, Home.resolve())
    found = estimate(plan, benchmarks)
    source = "from the ledger's trials" if found.known_pace else "a guess until the ledger knows these strategies"
    if plan.content.halving:
        typer.echo(f"halving makes that {found.trials} trials, most of them on few questions")
    typer.echo(f"{found.graphs} graphs, {found.rebuilds} of them to be built")
    typer.echo(f"about {_duration(found.seconds)} ({source}); finished trials are not repeated")
    models = estimate_models(plan, benchmarks)
    if models is not None:
        print_estimate(models, "An estimate from a few questions, if all contexts differ: equal ones are read once.")
    for warning in warnings_of_plan(plan, benchmarks):
        if models is None or warning not in models.warnings:
            typer.echo(f"warning: {warning}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"

"""`hopbench sweep FILE`: try every combination of a file's parameters, and keep what is finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.errors import InputError

if TYPE_CHECKING:
    from flows.sweep import Swept

SHOWN = 10


def sweep_command(
    file: Annotated[Path, typer.Argument(help="The sweep: data sets, strategies, grid (YAML).", metavar="FILE")],
    out: Annotated[Path | None, typer.Option(help="Folder for trials.parquet.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file and print the number of trials.")] = False,
    no_prefect: Annotated[bool, typer.Option("--no-prefect", help="Run without a Prefect server.")] = False,
) -> None:
    """Run a grid of parameters over data sets; finished trials are kept and reused."""
    from eval.sweep_plan import read_sweep

    if out is None and not dry_run:
        raise InputError("--out is missing: name a folder for trials.parquet, or ask with --dry-run what would run")
    plan = read_sweep(file)
    typer.echo(
        f"{plan.trials} trials: {len(plan.candidates)} configurations × {len(plan.datasets)} data sets "
        f"({', '.join(Path(name).name for name in plan.datasets)})"
    )
    if dry_run or out is None:
        return
    from flows.cli.progress import terminal_progress
    from flows.sweep import sweep

    with terminal_progress() as progress:
        swept = sweep(plan, out, prefect=not no_prefect, report=progress)
    _print(swept)


def _print(swept: Swept) -> None:
    from flows.cli.output import add_row, console, number, table

    objective, datasets = swept.plan.content.objective, list(swept.results[0].records)
    metrics = list(dict.fromkeys((objective.metric, objective.also)))
    numbers = (*metrics, *(datasets if len(datasets) > 1 else ()))
    rows = table("configuration", "without", *numbers, "s", right=(*numbers, "s"))
    for result in swept.results[:SHOWN]:
        single = [result.records[name].metrics[objective.metric] for name in datasets] if len(datasets) > 1 else []
        seconds = sum(record.seconds for record in result.records.values())
        cells = [number(value) for value in (*map(result.mean, metrics), *single)]
        without = ", ".join(result.candidate.without) or "–"
        add_row(rows, result.candidate.label.replace(",", ", "), without, *cells, number(seconds, 1))
    out = console()
    out.print(rows)
    if swept.reused:
        out.print(f"{swept.reused} of {swept.plan.trials} trials were finished before")
    failed = sum(result.failures for result in swept.results)
    if failed:
        out.print(f"warning: {failed} questions failed; trials.parquet counts them by trial", style="yellow")
    for warning in swept.warnings:
        out.print(f"warning: {warning}", markup=False, style="yellow")
    for written in swept.files:
        out.print(f"wrote  {written}", markup=False, soft_wrap=True)

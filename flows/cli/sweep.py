"""`hopbench sweep FILE`: try every combination of a file's parameters, and keep what is finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from eval.sweep import Result
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
    from flows.cli.output import console

    out = console()
    if swept.plan.content.ablations:
        out.print(_ablations(swept))
    else:
        out.print(_best(swept))
        out.print(_by_dataset(swept), soft_wrap=True)
    if swept.reused:
        out.print(f"{swept.reused} of {swept.plan.trials} trials were finished before")
    failed = sum(result.failures for result in swept.results)
    if failed:
        out.print(f"warning: {failed} questions failed; trials.parquet counts them by trial", style="yellow")
    for warning in swept.warnings:
        out.print(f"warning: {warning}", markup=False, style="yellow")
    for written in swept.files:
        out.print(f"wrote  {written}", markup=False, soft_wrap=True)


def _best(swept: Swept) -> Table:
    """The best configurations, by what the grid varied."""
    from flows.cli.output import add_row, number, table

    objective = swept.plan.content.objective
    metrics = list(dict.fromkeys((objective.metric, objective.also)))
    rows = table("strategy", "varied", *metrics, "s", right=(*metrics, "s"))
    for result in swept.results[:SHOWN]:
        varied = ", ".join(f"{name}={value}" for name, value in result.candidate.varied.items())
        cells = [number(value) for value in map(result.mean, metrics)]
        add_row(rows, result.candidate.strategy.name, varied or "–", *cells, number(_seconds(result), 1))
    return rows


def _by_dataset(swept: Swept) -> str:
    """The best configuration's value on each data set."""
    from flows.cli.output import number

    metric = swept.plan.content.objective.metric
    parts = [f"{name} {number(record.metrics[metric])}" for name, record in swept.results[0].records.items()]
    return f"best {metric} by data set: {', '.join(parts)}"


def _ablations(swept: Swept) -> Table:
    """Every configuration, and what becomes of it without each of its edge types; in the order of the file."""
    from eval.sweep_plan import ablated
    from flows.cli.output import add_row, number, table

    metric = swept.plan.content.objective.metric
    by_strategy = {result.candidate.strategy: result for result in swept.results}
    rows = table("configuration", "without", metric, "change", right=(metric, "change"))
    for candidate in swept.plan.candidates:
        if candidate.of is not None:
            continue
        whole = by_strategy[candidate.strategy].mean(metric)
        add_row(rows, candidate.label, "–", number(whole), "")
        for variant, edges in ablated(candidate.strategy).items():
            found = by_strategy[variant].mean(metric)
            change = "not used" if variant == candidate.strategy else number(found - whole, sign=True)
            add_row(rows, "", ", ".join(edges), number(found), change)
    return rows


def _seconds(result: Result) -> float:
    return sum(record.seconds for record in result.records.values())

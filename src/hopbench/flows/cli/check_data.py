"""`hopbench check-data DATASET`: what a data set holds, what it lacks, and what of HopBench works on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli import complete
from hopbench.flows.cli.flags import argument, option, with_flags
from hopbench.flows.cli.output import add_row, console, table
from hopbench.flows.settings.graph_options import GraphOptions, graph_fields
from hopbench.flows.settings.setting import DATA, OUTPUT

if TYPE_CHECKING:
    from rich.console import Console

    from hopbench.eval.data_check.check import Checked, Use
    from hopbench.flows.cli.output import Grid

MAX_FAULTS = 20


def print_checked(checked: Checked) -> None:
    """Facts, findings, metrics and commands; or the faults that keep the data set from being used."""
    from hopbench.eval.data_check.check import ROLES

    screen = console()
    benchmark = checked.benchmark
    if benchmark is None:
        for fault in checked.faults[:MAX_FAULTS]:
            screen.print(f"fault: {fault}", markup=False, soft_wrap=True)
        if more := len(checked.faults[MAX_FAULTS:]):
            screen.print(f"and {more:,} more; --json has all")
        return
    screen.print(f"{benchmark.name} · role {benchmark.role}, {ROLES[benchmark.role]}", markup=False, soft_wrap=True)
    _show(screen, _facts(checked))
    if checked.findings:
        _show(screen, _findings(checked))
    else:
        screen.print("\nno mistakes found")
    _show(screen, _metrics(checked.metrics, len(benchmark.questions)))
    _show(screen, _commands(checked))


def _show(screen: Console, rows: Grid) -> None:
    screen.print()
    screen.print(rows)


def _facts(checked: Checked) -> Grid:
    rows = table("content", "count", "", right=("count",))
    for fact in checked.facts:
        add_row(rows, fact.name, f"{fact.count:,}", fact.note)
    return rows


def _findings(checked: Checked) -> Grid:
    rows = table("finding", "count", "such as", "remedy", right=("count",), fold=("finding", "such as", "remedy"))
    for finding in checked.findings:
        add_row(rows, finding.what, f"{finding.count:,}", ", ".join(finding.examples), finding.remedy)
    return rows


def _metrics(uses: Sequence[Use], questions: int) -> Grid:
    """Metrics with the same needs share a row."""
    together: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for use in uses:
        together.setdefault((use.needs, use.available), []).append(use.name)
    rows = table("metrics", "need", "here", fold=("metrics", "need"))
    for (needs, count), names in together.items():
        here = f"{count:,} of {questions:,} questions" if count else f"no question has {needs[0]}"
        add_row(rows, ", ".join(names), ", ".join(needs), here if questions else "no questions")
    return rows


def _commands(checked: Checked) -> Grid:
    rows = table("commands", "need", "here", fold=("here",))
    for use in checked.commands:
        answer = "yes" if use.available else "no"
        add_row(rows, use.name, ", ".join(use.needs), f"{answer}; {use.note}" if use.note and use.available else answer)
    return rows


@with_flags(GraphOptions, without=[name for name in graph_fields() if name != "questions"])
def check_data_command(
    dataset: Annotated[
        str,
        argument(help="A folder of documents or tables, an official file, or a name.", complete=complete.datasets),
    ],
    set_role: Annotated[
        str | None,
        option(
            DATA,
            help="Write what the folder is for into its README.md: tune (sweep and train may use it) or report.",
            complete=complete.one_of("tune", "report"),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(OUTPUT, help="Write it as a BEIR folder: the passages with their ids, questions and gold."),
    ] = None,
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
    **flags: Any,
) -> None:
    """Check a data set: what it holds and lacks, mistakes in it, and which metrics and commands work on it."""
    from hopbench.eval.benchmarks.beir import set_role as set_role_of
    from hopbench.eval.benchmarks.beir import write_benchmark
    from hopbench.eval.data_check import check_data
    from hopbench.flows.cli.output import print_json
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.support.errors import InputError

    Home.resolve().apply_environment()
    if set_role is not None:
        typer.echo(f"role {set_role} written to {_with_role(dataset, set_role)}", err=as_json)
    checked = check_data(dataset, flags["questions"])
    if as_json:
        print_json(checked.as_json())
    else:
        print_checked(checked)
    if checked.benchmark is None:
        count = len(checked.faults)
        raise InputError(f"{dataset}: cannot be used: {count} fault{'s' if count > 1 else ''} listed above")
    if out is not None:
        write_benchmark(checked.benchmark, out)
        if checked.benchmark.role != "user":
            set_role_of(out, checked.benchmark.role)
        typer.echo(f"written  {out}", err=as_json)
    if not as_json:
        _print_next(checked, out)


def _print_next(checked: Checked, out: Path | None) -> None:
    first, *others = checked.next_commands(out)
    screen = console()
    screen.print(f"\nnext: {first}", markup=False, soft_wrap=True)
    for other in others:
        screen.print(f"  or: {other}", markup=False, soft_wrap=True)


def _with_role(dataset: str, role: str) -> Path:
    from hopbench.eval.benchmarks.beir import set_role
    from hopbench.eval.benchmarks.loader import shipped_folders
    from hopbench.retrieval.support.errors import InputError

    folder = Path(os.path.expanduser(dataset))
    if dataset in shipped_folders():
        raise InputError(f"--set-role {role}: {dataset} is shipped with HopBench and keeps its role")
    if not folder.is_dir():
        raise InputError(
            f"--set-role {role}: {dataset} is no folder, and the role is written in a folder's README.md: put the "
            "file into one, or `hopbench check-data FILE --out DIR`"
        )
    return set_role(folder, role)

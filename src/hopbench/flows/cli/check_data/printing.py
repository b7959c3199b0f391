"""How `hopbench check-data` prints what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hopbench.eval.data_check.check import ROLES, Checked
from hopbench.flows.cli.printing.output import add_row, console, table

if TYPE_CHECKING:
    from rich.console import Console

    from hopbench.eval.data_check.check import MetricUse
    from hopbench.flows.cli.printing.grid import Grid

MOST_FAULTS = 20


def print_checked(checked: Checked) -> None:
    """Facts, findings, metrics and commands; or the faults that keep the data set from being used."""
    screen = console()
    benchmark = checked.benchmark
    if benchmark is None:
        for fault in checked.faults[:MOST_FAULTS]:
            screen.print(f"fault: {fault}", markup=False, soft_wrap=True)
        if more := len(checked.faults[MOST_FAULTS:]):
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


def _metrics(uses: Sequence[MetricUse], questions: int) -> Grid:
    """Metrics with the same needs share a row."""
    together: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for use in uses:
        together.setdefault((use.needs, use.questions), []).append(use.name)
    rows = table("metrics", "need", "here", fold=("metrics", "need"))
    for (needs, count), names in together.items():
        here = f"{count:,} of {questions:,} questions" if count else f"no question has {needs[0]}"
        add_row(rows, ", ".join(names), ", ".join(needs), here if questions else "no questions")
    return rows


def _commands(checked: Checked) -> Grid:
    rows = table("commands", "need", "here", fold=("here",))
    for use in checked.commands:
        answer = "yes" if use.works else "no"
        add_row(rows, use.command, use.needs, f"{answer}; {use.note}" if use.note and use.works else answer)
    return rows

"""`hopbench check-data DATASET`: what a data set holds, what it lacks, and what of HopBench works on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import Json, argument, option, with_flags
from hopbench.flows.cli.output import Grid, console, echo, print_json
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.setting import DATA, OUTPUT
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.data_check.check import Checked, Use
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
    facts = Grid("content", "count", "", right=("count",))
    for fact in checked.facts:
        facts.add_row(fact.name, f"{fact.count:,}", fact.note)
    findings = Grid("finding", "count", "such as", "remedy", right=("count",), fold=("finding", "such as", "remedy"))
    for finding in checked.findings:
        findings.add_row(finding.what, f"{finding.count:,}", ", ".join(finding.examples), finding.remedy)
    commands = Grid("commands", "need", "here", fold=("here",))
    for use in checked.commands:
        answer = "yes" if use.available else "no"
        note = f"{answer}; {use.note}" if use.note and use.available else answer
        commands.add_row(use.name, ", ".join(use.needs), note)
    metrics = _metrics(checked.metrics, len(benchmark.questions))
    for shown in (facts, findings if checked.findings else "no mistakes found", metrics, commands):
        screen.print()
        screen.print(shown)


def _metrics(uses: Sequence[Use], questions: int) -> Grid:
    """Metrics with the same needs share a row."""
    together: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for use in uses:
        together.setdefault((use.needs, use.available), []).append(use.name)
    rows = Grid("metrics", "need", "here", fold=("metrics", "need"))
    for (needs, count), names in together.items():
        here = f"{count:,} of {questions:,} questions" if count else f"no question has {needs[0]}"
        rows.add_row(", ".join(names), ", ".join(needs), here if questions else "no questions")
    return rows


@with_flags(GraphOptions, only=["questions"])
def check_data_command(
    dataset: Annotated[
        str,
        argument(help="A folder of documents or tables, an official file, or a name.", values="datasets"),
    ],
    set_role: Annotated[
        str | None,
        option(
            DATA,
            help="Write what the folder is for into its README.md: tune (sweep and train may use it) or report.",
            values="roles",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(OUTPUT, help="Write it as a BEIR folder: the passages with their ids, questions and gold."),
    ] = None,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Check a data set: what it holds and lacks, mistakes in it, and which metrics and commands work on it."""
    from hopbench.eval.benchmarks.beir import set_role as set_role_of
    from hopbench.eval.benchmarks.beir import write_benchmark
    from hopbench.eval.data_check import check_data
    from hopbench.flows.settings.home import Home

    Home.resolve().apply_environment()
    if set_role is not None:
        echo(f"role {set_role} written to {_with_role(dataset, set_role)}", err=as_json)
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
        echo(f"written  {out}", err=as_json)
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

    folder = Path(os.path.expanduser(dataset))
    if dataset in shipped_folders():
        raise InputError(f"--set-role {role}: {dataset} is shipped with HopBench and keeps its role")
    if not folder.is_dir():
        raise InputError(
            f"--set-role {role}: {dataset} is no folder, and the role is written in a folder's README.md: put the "
            "file into one, or `hopbench check-data FILE --out DIR`"
        )
    return set_role(folder, role)

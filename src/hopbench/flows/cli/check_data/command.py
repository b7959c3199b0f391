"""`hopbench check-data DATASET`: what a data set holds, what it lacks, and what of HopBench works on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, OUTPUT, argument, option, with_flags
from hopbench.flows.settings.graph_options import GraphOptions, graph_fields


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
    from hopbench.eval.benchmarks.beir import write_benchmark
    from hopbench.eval.benchmarks.card import set_role as set_role_of
    from hopbench.eval.data_check import check_data
    from hopbench.flows.cli.check_data.printing import print_checked
    from hopbench.flows.cli.printing.output import print_json
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


def _with_role(dataset: str, role: str) -> Path:
    from hopbench.eval.benchmarks.card import set_role
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

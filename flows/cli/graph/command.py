"""`hopbench graph build|info|copy|list`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.graph import Config, Dataset, NoPrefect, StoredGraphFlags
from hopbench.flows.cli.flags.groups import with_flags
from hopbench.flows.cli.flags.panels import EXECUTION, OUTPUT, option
from hopbench.flows.cli.graph.copy import copy_command
from hopbench.flows.cli.graph.list import list_command

app = typer.Typer(
    help="Build a benchmark's graph, look at one or all, or copy one to another store.", no_args_is_help=True
)


@app.command("build")
@with_flags(StoredGraphFlags)
def build_command(
    dataset: Dataset = "hopworld",
    reference: Annotated[
        Path | None, option(OUTPUT, help="Triples (JSONL) to compare the graph with: precision and recall.")
    ] = None,
    force: Annotated[bool, option(EXECUTION, "--force", help="Build it again even if it is there.")] = False,
    no_prefect: NoPrefect = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Build the graph of a benchmark; an interrupted build goes on where it stopped."""
    from hopbench.flows.cli.graph.info import graph_lines
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.graph.commands import build
    from hopbench.flows.settings.home import Home

    options = StoredGraphFlags(**flags).graph_options(dataset=dataset)
    with terminal_progress() as progress:
        built = build(options, Home.resolve(), progress, force=force, prefect=not no_prefect, reference=reference)
    record = built.record
    typer.echo(f"graph {record['build_key'][:12]} fingerprint {record['fingerprint']}")
    typer.echo(f"nodes {record['nodes']}\nedges {record['edges']}\nbuilt in {record['build_seconds']} s")
    for line in graph_lines(built):
        typer.echo(line)


@app.command("info")
@with_flags(StoredGraphFlags)
def info_command(dataset: Dataset = "hopworld", config: Config = None, **flags: Any) -> None:
    """Print a graph's fingerprint, counts, degrees, similarities and isolated chunks."""
    from hopbench.flows.cli.graph.info import print_info
    from hopbench.flows.graph.commands import inspect
    from hopbench.flows.settings.home import Home

    print_info(inspect(StoredGraphFlags(**flags).graph_options(dataset=dataset), Home.resolve()))


app.command("copy")(copy_command)
app.command("list")(list_command)

"""`hopbench graph build|info|copy|list`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, EXECUTION, OUTPUT, Config, option, with_flags
from hopbench.flows.cli.flags.shared import NoPrefect
from hopbench.flows.cli.printing.output import console, print_json
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.flows.graph.list import StoredGraph

app = typer.Typer(
    help="Build a benchmark's graph, look at one or all, or copy one to another store.", no_args_is_help=True
)


From = Annotated[
    str,
    option(DATA, "--from", help="The store that holds the graph: kglite, arrays or neo4j.", complete=complete.stores),
]
To = Annotated[str, option(DATA, "--to", help="The store to copy it to.", complete=complete.stores)]
DIGITS = 12
Only = Annotated[
    str | None, option(DATA, help="Only this store: kglite, arrays or neo4j (default: all).", complete=complete.stores)
]


@app.command("build")
@with_flags(GraphOptions, dataset="hopworld")
def build_command(
    reference: Annotated[
        Path | None, option(OUTPUT, help="Triples (JSONL) to compare the graph with: precision and recall.")
    ] = None,
    force: Annotated[bool, option(EXECUTION, "--force", help="Build it again even if it is there.")] = False,
    no_prefect: NoPrefect = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Build the graph of a benchmark; an interrupted build resumes where it stopped."""
    from hopbench.flows.cli.graph.printing import graph_lines
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.graph.commands import build
    from hopbench.flows.settings.home import Home

    options = GraphOptions(**flags)
    with terminal_progress() as progress:
        built = build(options, Home.resolve(), progress, force=force, prefect=not no_prefect, reference=reference)
    record = built.record
    typer.echo(f"graph {record['build_key'][:12]} fingerprint {record['fingerprint']}")
    typer.echo(f"nodes {record['nodes']}\nedges {record['edges']}\nbuilt in {record['build_seconds']} s")
    for line in graph_lines(built):
        typer.echo(line)


@app.command("info")
@with_flags(GraphOptions, dataset="hopworld")
def info_command(config: Config = None, **flags: Any) -> None:
    """Print a graph's fingerprint, counts, degrees, similarities and isolated chunks."""
    from hopbench.flows.cli.graph.printing import print_info
    from hopbench.flows.graph.commands import inspect
    from hopbench.flows.settings.home import Home

    print_info(inspect(GraphOptions(**flags), Home.resolve()))


@app.command("copy")
@with_flags(GraphOptions, without=("store", "mapping", "neo4j_vector_index"), dataset="hopworld")
def copy_command(source: From, target: To, config: Config = None, **flags: Any) -> None:
    """Copy a built graph to another store and verify counts and fingerprint."""
    from hopbench.flows.settings.home import Home
    from hopbench.flows.settings.stores import check_store, open_store

    if source == target:
        raise InputError(f"--from and --to are both {source!r}: name two stores")
    home = Home.resolve()
    for engine in (source, target):
        check_store(engine, home)
    home.apply_environment()
    options = GraphOptions(store=source, **flags)
    home.prepare()
    plan = options.graph_plan(options.benchmark(home), home)
    from hopbench.retrieval.graph.stores.contents import copy_graph

    stores = [open_store(engine, plan.namespace, home) for engine in (source, target)]
    try:
        copied = copy_graph(stores[0], stores[1], plan.embedder)
    finally:
        for store in stores:
            store.close()
    done = f"copied to {target} and verified" if copied.fresh else f"stood in {target} already, verified"
    typer.echo(f"graph {plan.namespace} {done}: fingerprint {copied.fingerprint}")
    typer.echo(f"nodes {dict(copied.nodes)}\nedges {dict(copied.edges)}")


@app.command("list")
def list_command(
    store: Only = None,
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
) -> None:
    """List every graph in the home and in Neo4j: its data set, settings, size and date."""
    from hopbench.flows.graph.list import graphs
    from hopbench.flows.settings.home import Home

    home = Home.resolve()
    found, notes = graphs(home, store)
    if as_json:
        print_json([asdict(item) for item in found])
    else:
        _print(found, "Neo4j" if store == "neo4j" else str(home.graphs))
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _print(found: list[StoredGraph], place: str) -> None:
    screen = console()
    for item in found:
        built = "date not known" if item.built is None else item.built[:16].replace("T", " ")
        how = [item.store, item.extractor, item.embedder, _size(item.size), built]
        screen.print(f"{item.dataset}  {' · '.join(filter(None, how))}", markup=False, soft_wrap=True)
        if item.problem:
            screen.print(f"  {item.namespace}: {item.problem}", markup=False, soft_wrap=True)
            continue
        screen.print(f"  build key {item.build_key[:DIGITS]}  fingerprint {item.fingerprint[:DIGITS]}", markup=False)
        counts = ", ".join(f"{count:,} {name}" for name, count in {**item.nodes, **item.edges}.items())
        screen.print(f"  {counts}", markup=False)
    if not found:
        screen.print(f"no graph is kept in {place}: hopbench graph build makes one", markup=False, soft_wrap=True)


def _size(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"

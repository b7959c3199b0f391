"""`hopbench graph build|info|copy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.graph_copy import copy_command
from flows.cli.graph_flags import Config, Dataset, Embedder, Extractor, NoPrefect, Store, Triples
from flows.cli.model_flags import Gleaning, Llm
from flows.home import Home
from flows.options import GraphOptions

app = typer.Typer(help="Build a benchmark's graph, look at one, or copy it to another store.", no_args_is_help=True)
app.command("copy")(copy_command)


@app.command("build")
def build_command(
    dataset: Dataset = "hopworld",
    store: Store = "kglite",
    embedder: Embedder = "wordllama",
    extractor: Extractor = "rules",
    triples: Triples = None,
    llm: Llm = None,
    gleaning: Gleaning = 0,
    reference: Annotated[
        Path | None, typer.Option(help="Triples (JSONL) to compare the graph with: precision and recall.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build it again even if it is there.")] = False,
    no_prefect: NoPrefect = False,
    config: Config = None,
) -> None:
    """Build the graph of a benchmark; an interrupted build goes on where it stopped."""
    from flows.cli.graph_info import graph_lines
    from flows.cli.progress import terminal_progress
    from flows.graph_commands import build

    options = GraphOptions(
        dataset=dataset,
        store=store,
        embedder=embedder,
        extractor=extractor,
        triples=triples,
        llm=llm,
        gleaning=gleaning,
    )
    with terminal_progress() as progress:
        built = build(options, Home.resolve(), progress, force=force, prefect=not no_prefect, reference=reference)
    record = built.record
    typer.echo(f"graph {record['build_key'][:12]} fingerprint {record['fingerprint']}")
    typer.echo(f"nodes {record['nodes']}\nedges {record['edges']}\nbuilt in {record['build_seconds']} s")
    for line in graph_lines(built):
        typer.echo(line)


@app.command("info")
def info_command(
    dataset: Dataset = "hopworld",
    store: Store = "kglite",
    embedder: Embedder = "wordllama",
    extractor: Extractor = "rules",
    triples: Triples = None,
    llm: Llm = None,
    gleaning: Gleaning = 0,
    config: Config = None,
) -> None:
    """Print a graph's fingerprint, counts, degrees, similarities and isolated chunks."""
    from flows.cli.graph_info import print_info
    from flows.graph_commands import inspect

    options = GraphOptions(
        dataset=dataset,
        store=store,
        embedder=embedder,
        extractor=extractor,
        triples=triples,
        llm=llm,
        gleaning=gleaning,
    )
    print_info(inspect(options, Home.resolve()))

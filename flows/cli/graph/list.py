"""`hopbench graph list`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.panels import DATA, OUTPUT, option
from hopbench.flows.cli.printing.output import console, print_json

if TYPE_CHECKING:
    from hopbench.flows.graph.list import StoredGraph

DIGITS = 12
Only = Annotated[
    str | None, option(DATA, help="Only this store: kglite or neo4j (default: both).", complete=complete.stores)
]


def list_command(
    store: Only = None,
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
) -> None:
    """List every graph that is kept, in the home's files and in Neo4j: of what, how built, how large, since when."""
    from hopbench.flows.graph.list import graphs
    from hopbench.flows.settings.home import Home

    home = Home.resolve()
    found, notes = graphs(home, store)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        _print(found, str(home.graphs))
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _print(found: list[StoredGraph], folder: str) -> None:
    screen = console()
    for one in found:
        built = "date not known" if one.built is None else one.built[:16].replace("T", " ")
        how = [one.store, one.extractor, one.embedder, _size(one.size), built]
        screen.print(f"{one.dataset}  {' · '.join(filter(None, how))}", markup=False, soft_wrap=True)
        if one.problem:
            screen.print(f"  {one.namespace}: {one.problem}", markup=False, soft_wrap=True)
            continue
        screen.print(f"  build key {one.build_key[:DIGITS]}  fingerprint {one.fingerprint[:DIGITS]}", markup=False)
        counts = ", ".join(f"{count:,} {name}" for name, count in {**one.nodes, **one.edges}.items())
        screen.print(f"  {counts}", markup=False)
    if not found:
        screen.print(f"no graph is kept in {folder}: hopbench graph build makes one", markup=False, soft_wrap=True)


def _size(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"

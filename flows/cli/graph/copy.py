"""`hopbench graph copy`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.graph import Config, Dataset, GraphFlags
from hopbench.flows.cli.flags.groups import with_flags
from hopbench.flows.cli.flags.panels import DATA, option
from hopbench.retrieval.support.errors import InputError

From = Annotated[
    str, option(DATA, "--from", help="The store that holds the graph: kglite or neo4j.", complete=complete.stores)
]
To = Annotated[str, option(DATA, "--to", help="The store to copy it to.", complete=complete.stores)]


@with_flags(GraphFlags)
def copy_command(source: From, target: To, dataset: Dataset = "hopworld", config: Config = None, **flags: Any) -> None:
    """Copy a built graph to another store and verify counts and fingerprint."""
    from hopbench.flows.settings.home import Home
    from hopbench.flows.settings.options import check_store, open_store

    if source == target:
        raise InputError(f"--from and --to are both {source!r}: name two stores")
    home = Home.resolve()
    for engine in (source, target):
        check_store(engine, home)
    home.apply_environment()
    options = GraphFlags(**flags).graph_options(dataset=dataset, store=source)
    plan = options.graph_plan(options.benchmark(), home.prepare())
    from hopbench.retrieval.graph.stores.copy import copy_graph

    stores = [open_store(engine, plan.namespace, home) for engine in (source, target)]
    try:
        copied = copy_graph(stores[0], stores[1], plan.embedder)
    finally:
        for store in stores:
            store.close()
    done = f"copied to {target} and verified" if copied.fresh else f"stood in {target} already, verified"
    typer.echo(f"graph {plan.namespace} {done}: fingerprint {copied.fingerprint}")
    typer.echo(f"nodes {dict(copied.nodes)}\nedges {dict(copied.edges)}")

"""`hopbench graph build|info|copy|list`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hopbench.flows.cli.flags import Config, Json, option, with_flags
from hopbench.flows.cli.output import console, echo, print_json, reserved
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.options import WorkerOptions
from hopbench.flows.settings.setting import DATA, EXECUTION, OUTPUT, values_for
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.flows.graph.commands import Built, GraphInfo, StoredGraph

MAX_LISTED = 10


def print_info(info: GraphInfo) -> None:
    """Fingerprint, counts, quantiles, what each threshold keeps, and a warning of isolated chunks."""
    from hopbench.flows.graph.commands import QUANTILES

    screen = console()
    screen.print(f"graph       {info.namespace}\nbuild key   {info.record['build_key']}", markup=False)
    screen.print(f"fingerprint {info.fingerprint}", markup=False)
    if info.fingerprint != info.record["fingerprint"]:
        screen.print("warning: this is not the fingerprint that was written; the graph was changed", style="yellow")
    if info.record.get("similar") is not None:
        screen.print(f"SIMILAR_TO  {similar_line(info.record)}", markup=False)
    if "links" in info.record:
        screen.print(f"LINKS_TO    {links_line(info.record)}", markup=False)
    for line in info.record.get("joined", ()):
        screen.print(f"warning: {line}", style="yellow", markup=False, soft_wrap=True)
    for title, counts in (("nodes", info.nodes), ("edges", info.edges)):
        shown = Table(title, "count", box=None, pad_edge=False)
        for name, count in counts.items():
            shown.add_row(name, f"{count:,}")
        screen.print(shown)
    for title, rows in (("degree", info.degrees), ("weight", info.weights)):
        shown = Table(title, *(f"{q:.0%}" for q in QUANTILES), box=None, pad_edge=False)
        for name, values in rows.items():
            shown.add_row(name, *(f"{value:g}" for value in values))
        screen.print(shown)
    kept = Table("SIMILAR_TO ≥", "chunks that keep a neighbour", box=None, pad_edge=False)
    for threshold, share in info.kept.items():
        kept.add_row(f"{threshold:.1f}", f"{share:.1%}")
    screen.print(kept)
    if info.linking.questions:
        screen.print(
            f"linking recall {info.linking.share:.3f}: an entity of the gold path is recognised in "
            f"{info.linking.recognised:,} of {info.linking.questions:,} questions",
            markup=False,
            soft_wrap=True,
        )
    if info.isolated:
        listed = ", ".join(info.isolated[:MAX_LISTED])
        screen.print(
            f"warning: {len(info.isolated)} chunks have no edge and only a hop-free ranking finds them: {listed}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def links_line(record: Mapping[str, Any]) -> str:
    """Say how many hyperlinks a build found: "430 links between passages; 342 lead out of the corpus, …"."""
    return (
        "{internal:,} links between passages; {external:,} lead out of the corpus, {unresolved:,} to no document here"
    ).format(**record["links"])


def similar_line(record: Mapping[str, Any]) -> str:
    """How a build found the nearest chunks: "approximate: recall 0.981 on a sample; 93 of 2,000 cells a chunk"."""
    from hopbench.retrieval.graph.construction.plan import EXACT
    from hopbench.retrieval.graph.schema import CHUNK
    from hopbench.retrieval.search.exact import SAMPLE

    search, chunks = record["similar"], record.get("nodes", {}).get(CHUNK, SAMPLE)
    if search["method"] == EXACT:
        return "exact: all pairs compared"
    return (
        f"approximate: recall {search['recall']:.3f} on a sample of {min(SAMPLE, chunks):,} chunks; each looked into "
        f"{search['probes']:,} of {search['cells']:,} cells"
    )


def graph_lines(built: Built) -> Iterator[str]:
    """The rest of a build's output: warnings, calls to the model, agreement with reference triples."""
    if "similar" in built.record:
        yield f"SIMILAR_TO {similar_line(built.record)}"
    if "links" in built.record:
        yield f"LINKS_TO {links_line(built.record)}"
    yield from (f"warning: {warning}" for warning in built.warnings)
    for purpose, spent in built.calls.items():
        usd = "price not known" if spent["usd"] is None else f"${spent['usd']:.4f}"
        thinking = f" ({spent['tokens_thinking']} of thinking)" if spent["tokens_thinking"] else ""
        yield (
            f"{purpose}: {spent['calls']} calls ({spent['cached']} from the cache, {spent['failed']} failed), "
            f"{spent['tokens_in']} + {spent['tokens_out']} tokens{thinking}, {usd}"
        )
    for what, overlap in (built.agreement or {}).items():
        shares = {"precision": overlap.precision, "recall": overlap.recall}
        figures = "  ".join(f"{name} {'–' if share is None else f'{share:.3f}'}" for name, share in shares.items())
        yield (
            f"{what:<9}  {figures}  ({overlap.common} in both, {overlap.predicted} found, {overlap.expected} in the "
            "reference)"
        )


app = typer.Typer(
    help="Build a benchmark's graph, look at one or all, or copy one to another store.", no_args_is_help=True
)


From = Annotated[
    str,
    option(DATA, "--from", help="The store that holds the graph: kglite, arrays or neo4j.", values="stores"),
]
To = Annotated[str, option(DATA, "--to", help="The store to copy it to.", values="stores")]
DIGITS = 12
Only = Annotated[
    str | None, option(DATA, help="Only this store: kglite, arrays or neo4j (default: all).", values="stores")
]


@app.command("build")
@reserved
@with_flags(GraphOptions, WorkerOptions, without=("runner", "workers", "batch"), dataset="hopworld")
def build_command(
    reference: Annotated[
        Path | None, option(OUTPUT, help="Triples (JSONL) to compare the graph with: precision and recall.")
    ] = None,
    force: Annotated[bool, option(EXECUTION, "--force", help="Build it again even if it is there.")] = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Build the graph of a benchmark; an interrupted build resumes where it stopped."""
    from hopbench.flows.graph.commands import build
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.settings.home import Home

    options, prefect = GraphOptions(**values_for(GraphOptions, flags)), not flags["no_prefect"]
    with terminal_progress() as progress:
        built = build(options, Home.resolve(), progress, force=force, prefect=prefect, reference=reference)
    record = built.record
    echo(f"graph {record['build_key'][:12]} fingerprint {record['fingerprint']}")
    echo(f"nodes {record['nodes']}\nedges {record['edges']}\nbuilt in {record['build_seconds']} s")
    for line in graph_lines(built):
        echo(line)


@app.command("info")
@reserved
@with_flags(GraphOptions, dataset="hopworld")
def info_command(config: Config = None, **flags: Any) -> None:
    """Print a graph's fingerprint, counts, degrees, similarities and isolated chunks."""
    from hopbench.flows.graph.commands import inspect
    from hopbench.flows.settings.home import Home

    print_info(inspect(GraphOptions(**flags), Home.resolve()))


@app.command("copy")
@reserved
@with_flags(GraphOptions, without=("store", "mapping", "neo4j_vector_index"), dataset="hopworld")
def copy_command(source: From, target: To, config: Config = None, **flags: Any) -> None:
    """Copy a built graph to another store and verify counts and fingerprint."""
    from hopbench.flows.settings.home import Home, check_store, open_store

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
        copied, fresh = copy_graph(stores[0], stores[1], plan.embedder)
    finally:
        for store in stores:
            store.close()
    done = f"copied to {target} and verified" if fresh else f"stood in {target} already, verified"
    echo(f"graph {plan.namespace} {done}: fingerprint {copied['fingerprint']}")
    echo(f"nodes {copied['nodes']}\nedges {copied['edges']}")


@app.command("list")
@reserved
def list_command(
    store: Only = None,
    as_json: Json = False,
) -> None:
    """List every graph in the home and in Neo4j: its data set, settings, size and date."""
    from hopbench.flows.graph.commands import graphs
    from hopbench.flows.settings.home import Home

    home = Home.resolve()
    found, notes = graphs(home, store)
    if as_json:
        print_json([asdict(item) for item in found])
    else:
        _print(found, "Neo4j" if store == "neo4j" else str(home.graphs))
    for note in notes:
        echo(f"note: {note}", err=True)


def _print(found: list[StoredGraph], place: str) -> None:
    screen = console()
    for item in found:
        built = "date not known" if item.built is None else item.built[:16].replace("T", " ")
        size = "" if item.size is None else f"{item.size / 1e6:,.1f} MB"
        if item.size is not None and item.size < 1e6:
            size = f"{item.size / 1e3:,.0f} kB"
        how = [item.store, item.extractor, item.embedder, size, built]
        screen.print(f"{item.dataset}  {' · '.join(filter(None, how))}", markup=False, soft_wrap=True)
        if item.problem:
            screen.print(f"  {item.namespace}: {item.problem}", markup=False, soft_wrap=True)
            continue
        screen.print(f"  build key {item.build_key[:DIGITS]}  fingerprint {item.fingerprint[:DIGITS]}", markup=False)
        counts = ", ".join(f"{count:,} {name}" for name, count in {**item.nodes, **item.edges}.items())
        screen.print(f"  {counts}", markup=False)
    if not found:
        screen.print(f"no graph is kept in {place}: hopbench graph build makes one", markup=False, soft_wrap=True)

"""How `hopbench graph info` prints a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from hopbench.eval.graph_quality import Overlap
from hopbench.flows.graph.commands import QUANTILES, Built, GraphInfo
from hopbench.retrieval.graph.construction.plan import EXACT
from hopbench.retrieval.graph.schema import CHUNK
from hopbench.retrieval.search.samples import SAMPLE

MAX_LISTED = 10


def print_info(info: GraphInfo) -> None:
    """Fingerprint, counts, quantiles, what each threshold keeps, and a warning of isolated chunks."""
    console = Console(highlight=False)
    console.print(f"graph       {info.namespace}\nbuild key   {info.record['build_key']}", markup=False)
    console.print(f"fingerprint {info.fingerprint}", markup=False)
    if info.fingerprint != info.record["fingerprint"]:
        console.print("warning: this is not the fingerprint that was written; the graph was changed", style="yellow")
    if info.record.get("similar") is not None:
        console.print(f"SIMILAR_TO  {similar_line(info.record)}", markup=False)
    for line in info.record.get("joined", ()):
        console.print(f"warning: {line}", style="yellow", markup=False, soft_wrap=True)
    console.print(_counts("nodes", info.nodes), _counts("edges", info.edges))
    console.print(_quantile_table("degree", info.degrees), _quantile_table("weight", info.weights))
    kept = Table("SIMILAR_TO ≥", "chunks that keep a neighbour", box=None, pad_edge=False)
    for threshold, share in info.kept.items():
        kept.add_row(f"{threshold:.1f}", f"{share:.1%}")
    console.print(kept)
    if info.linking.questions:
        console.print(
            f"linking recall {info.linking.share:.3f}: an entity of the gold path is recognised in "
            f"{info.linking.recognised:,} of {info.linking.questions:,} questions",
            markup=False,
            soft_wrap=True,
        )
    if info.isolated:
        listed = ", ".join(info.isolated[:MAX_LISTED])
        console.print(
            f"warning: {len(info.isolated)} chunks have no edge and only a hop-free ranking finds them: {listed}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def similar_line(record: Mapping[str, Any]) -> str:
    """How a build found the nearest chunks: "approximate: recall 0.981 on a sample; 93 of 2,000 cells a chunk"."""
    search, chunks = record["similar"], record.get("nodes", {}).get(CHUNK, SAMPLE)
    if search["method"] == EXACT:
        return "exact: all pairs compared"
    return (
        f"approximate: recall {search['recall']:.3f} on a sample of {min(SAMPLE, chunks):,} chunks; each looked into "
        f"{search['probes']:,} of {search['cells']:,} cells"
    )


def _counts(title: str, counts: Mapping[str, int]) -> Table:
    table = Table(title, "count", box=None, pad_edge=False)
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    return table


def _quantile_table(title: str, rows: Mapping[str, list[float]]) -> Table:
    table = Table(title, *(f"{q:.0%}" for q in QUANTILES), box=None, pad_edge=False)
    for name, values in rows.items():
        table.add_row(name, *(f"{value:g}" for value in values))
    return table


def graph_lines(built: Built) -> Iterator[str]:
    """The rest of a build's output: warnings, calls to the model, agreement with reference triples."""
    if "similar" in built.record:
        yield f"SIMILAR_TO {similar_line(built.record)}"
    yield from (f"warning: {warning}" for warning in built.warnings)
    for purpose, spent in built.calls.items():
        usd = "price not known" if spent["usd"] is None else f"${spent['usd']:.4f}"
        thinking = f" ({spent['tokens_thinking']} of thinking)" if spent["tokens_thinking"] else ""
        yield (
            f"{purpose}: {spent['calls']} calls ({spent['cached']} from the cache, {spent['failed']} failed), "
            f"{spent['tokens_in']} + {spent['tokens_out']} tokens{thinking}, {usd}"
        )
    if built.agreement is not None:
        yield _agreement("entities ", built.agreement.entities)
        yield _agreement("relations", built.agreement.relations)


def _agreement(what: str, overlap: Overlap) -> str:
    shares = {"precision": overlap.precision, "recall": overlap.recall}
    figures = "  ".join(f"{name} {'–' if share is None else f'{share:.3f}'}" for name, share in shares.items())
    return (
        f"{what}  {figures}  ({overlap.common} in both, {overlap.predicted} found, {overlap.expected} in the reference)"
    )

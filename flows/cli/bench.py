"""`hopbench bench`: what each strategy costs, and how it grows with the corpus."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.errors import InputError

if TYPE_CHECKING:
    from flows.bench import Built, Cost

_COLUMNS: Mapping[str, Callable[[Cost], float]] = {
    "milliseconds a question": lambda cost: cost.ms,
    "edges touched a question": lambda cost: cost.edges,
    "rows read a question": lambda cost: cost.rows,
}
SIZES = "1000,10000,100000"
LEAST = 1000  # passages of a world that has enough to ask


def bench_command(
    strategies: Annotated[str, typer.Option(help="Labels, separated by commas, as for run.")] = "all,all:tuned",
    sizes: Annotated[str, typer.Option(help="Passages of each world, separated by commas.")] = SIZES,
    questions: Annotated[int, typer.Option(min=10, max=200, help="Questions put to each world.")] = 100,
) -> None:
    """Measure seconds, round trips and rows of every strategy on worlds of growing size (hopworld's generator)."""
    from flows.bench import Built, growth
    from flows.cli.output import console
    from flows.home import Home
    from retrieval.strategies.registry import resolve

    wanted, labels = _sizes(sizes), resolve(strategies)
    Home.resolve().apply_environment()
    screen = console()
    found: list[Built | Cost] = []
    with tempfile.TemporaryDirectory(prefix="hopbench-bench-") as folder, screen.status("") as status:
        for one in growth(wanted, labels, questions, Path(folder), status.update):
            found.append(one)
            if isinstance(one, Built):
                screen.print(
                    f"{one.passages:,} passages: index {one.index_seconds:.1f} s, graph {one.graph_seconds:.1f} s"
                )
    _print_costs([one for one in found if not isinstance(one, Built)], wanted)


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < LEAST or sizes[-1] > 1_000_000:
        raise InputError(f"--sizes {text}: give whole numbers from {LEAST} to 1000000, such as {SIZES}")
    return sizes


def _print_costs(costs: Sequence[Cost], sizes: Sequence[int]) -> None:
    from flows.cli.output import add_row, console, table

    screen = console()
    heads = [f"{size:,}" for size in sizes]
    labels = {cost.label: [one for one in costs if one.label == cost.label] for cost in costs}
    once = table("once per index", "round trips", "seconds at most", right=("round trips", "seconds at most"))
    for label, own in labels.items():
        add_row(once, label, str(own[-1].round_trips), f"{max(cost.once_seconds for cost in own):.1f}")
    screen.print(once)
    for title, of in _COLUMNS.items():
        rows = table(title, *heads, "growth", right=(*heads, "growth"))
        for label, own in labels.items():
            values = [of(cost) for cost in own]
            growth = f"× {values[-1] / values[-2]:.1f}" if len(values) > 1 and values[-2] else "–"
            add_row(rows, label, *(f"{value:,.2f}" for value in values), growth)
        screen.print(rows)
    screen.print("round trips: for all questions together; growth: from the last size but one to the last")

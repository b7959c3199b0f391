"""Measure what each strategy costs, and how that grows with the corpus: `python -m tools.costs --help`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopbench.flows.cli.flags import option
from hopbench.flows.settings.setting import DATA, OUTPUT, STRATEGIES
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.strategies.base import Strategy
    from tools.costs.measure import Cost

_COLUMNS: Mapping[str, Callable[[Cost], float]] = {
    "milliseconds a question (CPU)": lambda cost: cost.ms,
    "milliseconds of a question asked alone, median": lambda cost: cost.alone,
    "milliseconds of a question asked alone, 95th percentile": lambda cost: cost.alone_p95,
    "edges touched a question": lambda cost: cost.edges,
    "rows read a question": lambda cost: cost.rows,
}
SIZES = "1000,10000,100000"
MIN_SIZE = 1000  # the smallest world with enough questions
_TRIALS_ON = option(
    DATA,
    metavar="DATASET",
    help="Also measure one more trial of a sweep there, over 200.",
    values="datasets",
)
app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def costs(
    strategies: Annotated[
        str, option(STRATEGIES, help="Labels, comma-separated; all; all:tuned.", values="labels")
    ] = "all,all:tuned",
    sizes: Annotated[str, option(DATA, help="Passages of each world, separated by commas, or none.")] = SIZES,
    questions: Annotated[int, option(DATA, min=10, max=200, help="Questions put to each world.")] = 100,
    store: Annotated[str, option(DATA, help="The graphs' store: kglite, arrays or neo4j.", values="stores")] = "kglite",
    out: Annotated[
        Path | None,
        option(OUTPUT, metavar="DIR", help="Keep worlds, graphs and figures here; the same command goes on here."),
    ] = None,
    table: Annotated[
        Path | None,
        option(OUTPUT, metavar="FILE", help="Write the tables into this Markdown file, between its two marks."),
    ] = None,
    trials_on: Annotated[str | None, _TRIALS_ON] = None,
) -> None:
    """Measure the time, memory and edges of builds and strategies on worlds of growing size (hopworld's generator)."""
    from hopbench.flows.settings.graph_options import GraphOptions
    from hopbench.flows.settings.home import Home, check_store
    from hopbench.retrieval.strategies.registry import resolve

    wanted, labels = _sizes(sizes), resolve(strategies)
    if not wanted and trials_on is None:
        raise InputError("--sizes none leaves nothing to measure without --trials-on: give sizes, or a data set")
    home = Home.resolve()
    check_store(store, home)
    home.apply_environment()
    _refuse_unwritable(out, table)
    if trials_on is not None:
        GraphOptions(dataset=trials_on).benchmark()  # refused before anything is measured
    if wanted and out is not None:
        _growth(wanted, labels, questions, store, out.absolute(), table)
    elif wanted:
        with tempfile.TemporaryDirectory(prefix="hopbench-bench-") as folder:
            _growth(wanted, labels, questions, store, Path(folder), table)
    if trials_on is not None:
        _trials(trials_on, home)


def _refuse_unwritable(out: Path | None, table: Path | None) -> None:
    """Refuse where nothing could be kept: what is measured may take hours."""
    from hopbench.eval.files import refuse_unwritable
    from tools.costs.growth import JOURNAL, check_document

    if table is not None:
        check_document(table)
    if out is not None:
        refuse_unwritable(out / JOURNAL)


def _growth(
    wanted: Sequence[int],
    labels: Mapping[str, Strategy],
    questions: int,
    store: str,
    folder: Path,
    table: Path | None,
) -> None:
    from hopbench.flows.cli.output import console
    from tools.costs.growth import Step, growth, markdown, write_table
    from tools.costs.measure import Cost

    screen = console()
    found: list[Step | Cost] = []
    with screen.status("") as status:
        for one in growth(wanted, labels, questions, folder, status.update, store):
            found.append(one)
            if isinstance(one, Step):
                part = " (what an earlier run had left)" if one.resumed else ""
                screen.print(
                    f"{one.passages:,} passages: {one.name}: {one.cpu:.1f} s of CPU{part}, {one.peak / 1e9:.2f} GB"
                )
    _print_costs([item for item in found if isinstance(item, Cost)], wanted)
    if table is not None:
        write_table(table, markdown(found))
        screen.print(f"the tables are in {table}")


def _trials(dataset: str, home: Home) -> None:
    from hopbench.flows.cli.output import Grid, console
    from tools.costs.sweep_trial import GRIDS, marginal_cost

    heads = ("first", "one more", "longest")
    rows = Grid("seconds of a trial", "questions", "trials", *heads, right=("questions", "trials", *heads))
    for strategy in GRIDS:
        cost = marginal_cost(dataset, strategy, home)
        spent = (f"{seconds:.2f}" for seconds in (cost.first, cost.mean, cost.longest))
        rows.add_row(strategy, str(cost.questions), str(cost.trials + 1), *spent)
    console().print(rows)


def _sizes(text: str) -> list[int]:
    if text == "none":
        return []
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < MIN_SIZE or sizes[-1] > 1_000_000:
        raise InputError(f"--sizes {text}: give whole numbers from {MIN_SIZE} to 1000000, such as {SIZES}, or none")
    return sizes


def _print_costs(costs: Sequence[Cost], sizes: Sequence[int]) -> None:
    from hopbench.flows.cli.output import Grid, console

    screen = console()
    heads = [f"{size:,}" for size in sizes]
    labels = {cost.label: [one for one in costs if one.label == cost.label] for cost in costs}
    once = Grid("once per index", "round trips", "seconds at most", right=("round trips", "seconds at most"))
    for label, own in labels.items():
        once.add_row(label, str(own[-1].round_trips), f"{max(cost.once_seconds for cost in own):.1f}")
    screen.print(once)
    for title, of in _COLUMNS.items():
        rows = Grid(title, *heads, "growth", right=(*heads, "growth"))
        for label, own in labels.items():
            values = [of(cost) for cost in own]
            growth = f"× {values[-1] / values[-2]:.1f}" if len(values) > 1 and values[-2] else "–"
            rows.add_row(label, *(f"{value:,.2f}" for value in values), growth)
        screen.print(rows)
    screen.print("round trips: for all questions together; growth: from the last size but one to the last")


if __name__ == "__main__":
    app()

"""`hopbench train hoprank`: learn the weights of the strategy hoprank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, EXECUTION, OUTPUT, option

if TYPE_CHECKING:
    from hopbench.flows.studies.training import Trained

app = typer.Typer(help="Learn the weights of a strategy from questions with gold passages.", no_args_is_help=True)


@app.callback()
def train() -> None:
    """Learn the weights of a strategy from questions with gold passages."""


@app.command("hoprank")
def hoprank_command(
    dataset: Annotated[
        list[str],
        option(DATA, help="A set to learn from; may be repeated. Tuning sets only.", complete=complete.datasets),
    ],
    out: Annotated[Path | None, option(OUTPUT, help="File for the weights; none: only the figures.")] = None,
    embedder: Annotated[
        list[str] | None,
        option(
            DATA, help="An embedder to learn with; may be repeated (default: wordllama).", complete=complete.embedders
        ),
    ] = None,
    folds: Annotated[int, option(EXECUTION, min=0, help="Folds of the cross-validation; 0 leaves it out.")] = 5,
    triples: Annotated[
        list[str] | None,
        option(DATA, help="NAME=FILE: ready triples of the set NAME, whose graph with them is also trained on."),
    ] = None,
    passes: Annotated[int, option(EXECUTION, min=1, max=4, help="How often paths are followed and scored.")] = 2,
    rounds: Annotated[
        int, option(EXECUTION, min=0, max=1000, help="Trees on top of the linear score; 0 leaves them out.")
    ] = 200,
    without: Annotated[
        list[str] | None,
        option(
            EXECUTION, help="A feature or kind of edge to leave out; `edge`: all features of edges. May be repeated."
        ),
    ] = None,
) -> None:
    """Learn hoprank's weights; print their scores on held-out folds and held-out data sets."""
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.studies.training import TrainOptions
    from hopbench.flows.studies.training import train as run

    options = TrainOptions(
        datasets=dataset,
        out=out,
        embedders=embedder or ("wordllama",),
        folds=folds,
        triples=tuple(triples or ()),
        passes=passes,
        without=tuple(without or ()),
        rounds=rounds,
    )
    with terminal_progress() as progress:
        trained = run(options, progress)
    _print(trained)
    typer.echo(
        f"{trained.numbers} numbers and {trained.trees} trees learned"
        + (f", written to {out}" if out else "; --out FILE keeps them")
    )


def _print(trained: Trained) -> None:
    from hopbench.flows.cli.printing.output import add_row, console, table

    rows = table(
        "tested on", "model", "data set", "embedder", "questions", "recall@5", "all_gold@10", right=("questions",)
    )
    for figure in trained.figures:
        recall = f"{figure.recall_at_5:.3f} [{figure.recall_interval[0]:.3f}, {figure.recall_interval[1]:.3f}]"
        complete = f"{figure.all_gold_at_10:.3f} [{figure.all_gold_interval[0]:.3f}, {figure.all_gold_interval[1]:.3f}]"
        add_row(
            rows,
            figure.setting,
            figure.model,
            figure.dataset + (" with triples" if figure.triples else ""),
            figure.embedder.partition(":")[0],
            str(figure.questions),
            recall,
            complete,
        )
    console().print(rows)
    for warning in trained.warnings:
        typer.echo(f"warning: {warning}", err=True)

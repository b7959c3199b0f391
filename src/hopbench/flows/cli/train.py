"""`hopbench train hoprank`: learn the weights of the strategy hoprank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hopbench.flows.cli.flags.declare import with_flags
from hopbench.flows.studies.train_options import TrainOptions

if TYPE_CHECKING:
    from hopbench.flows.studies.training import Trained

app = typer.Typer(help="Learn the weights of a strategy from questions with gold passages.", no_args_is_help=True)


@app.callback()
def train() -> None:
    """Learn the weights of a strategy from questions with gold passages."""


@app.command("hoprank")
@with_flags(TrainOptions)
def hoprank_command(**flags: Any) -> None:
    """Learn hoprank's weights; print their scores on held-out folds and held-out data sets."""
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.studies.training import train as run

    options = TrainOptions(**flags)
    with terminal_progress() as progress:
        trained = run(options, progress)
    _print(trained)
    if trained.unwritten is not None:
        raise trained.unwritten
    typer.echo(
        f"{trained.numbers} numbers and {trained.trees} trees learned, written to {options.out}"
        if options.out
        else "figures alone; --out FILE learns from all questions and keeps the weights"
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

"""`hopbench export LABEL|best.yaml|champion`: the winner as a folder that answers questions anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, OUTPUT, Config, argument, option, with_flags
from hopbench.flows.settings.graph_options import GraphOptions


@with_flags(GraphOptions, without=("dataset",))
def export_command(
    target: Annotated[
        str,
        argument(
            metavar="LABEL|best.yaml|champion",
            help="A label, the best.yaml of a sweep, or champion: the data set's.",
            complete=complete.label,
        ),
    ],
    out: Annotated[Path, option(OUTPUT, help="The folder to write.")],
    dataset: Annotated[
        str | None,
        option(DATA, help="The corpus (default: the one best.yaml names, else hopworld).", complete=complete.datasets),
    ] = None,
    register: Annotated[
        bool,
        option(OUTPUT, "--register", help="Also register it in MLflow as models:/hopbench-DATASET@champion."),
    ] = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Write a retriever with its corpus, vectors and graph into a folder that needs neither Prefect nor MLflow.

    It answers exactly as the label does in a run; a sample of questions is asked both before the folder is there.
    Python: retriever = hopbench.load(FOLDER).
    """
    from hopbench.flows.api.export import chosen, export

    choice = chosen(target, GraphOptions(dataset=dataset or "hopworld", **flags), dataset)
    folder, name, question = export(choice, out)
    typer.echo(f"exported  {folder}  ({choice.label} on {name})")
    typer.echo(f"use it    retriever = hopbench.load({str(folder)!r}); retriever({question!r}, k=5)")
    if register:
        from hopbench.flows.settings.home import Home
        from hopbench.flows.tracking.registry import register as register_model

        registered = register_model(Home.resolve(), folder, name, choice.label, question)
        typer.echo(f"model     {registered.uri}  (version {registered.version})")
        typer.echo(f"serve it  mlflow models serve --model-uri {registered.uri} --env-manager local")

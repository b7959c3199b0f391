"""`hopbench export LABEL|best.yaml|champion`: the winner as a folder that answers questions anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import Config, argument, option, with_flags
from hopbench.flows.cli.output import echo
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.setting import DATA, OUTPUT
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    pass


CHAMPION = "champion"
YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Chosen:
    """A label with the graph that it is exported with."""

    label: str
    options: GraphOptions


def chosen(target: str, options: GraphOptions, dataset: str | None) -> Chosen:
    """What `target` names: a label, a sweep's best.yaml, or `champion` (of the data set).

    A best.yaml decides the graph; `dataset` takes the place of the one it names. Raises InputError where the file
    names no single label, or a language model, which an exported retriever does not ask.
    """
    from hopbench.eval.trials.ledger import Ledger
    from hopbench.flows.settings.home import Home

    if target.endswith(YAML):
        return _of_file(Path(target), dataset)
    if target != CHAMPION:
        return Chosen(target, options)
    digest = options.benchmark().digest
    with Ledger.open(Home.resolve().prepare().ledger) as ledger:
        champion = ledger.champion_of(digest)
    if champion is None:
        raise InputError(
            f"{options.dataset} has no champion: name a label, or let hopbench sweep --champion or a nightly name one"
        )
    return Chosen(champion.label, options)


def _of_file(file: Path, dataset: str | None) -> Chosen:
    from hopbench.retrieval.support.input_files import read_yaml

    content = read_yaml(file)
    if not isinstance(content, dict) or not isinstance(content.get("strategies"), str):
        raise InputError(f"{file}: names no label under strategies: name the best.yaml that a sweep wrote")
    if content.get("llm"):
        raise InputError(
            f"{file}: llm {content['llm']!r}: an exported retriever asks no language model; sweep without --llm, or "
            "export the label itself"
        )
    options = GraphOptions.from_settings(content, dataset or content.get("dataset") or "hopworld")
    return Chosen(content["strategies"], options)


def export(choice: Chosen, out: Path) -> tuple[Path, str, str]:
    """Write the retriever; returns the folder, the data set's name and a question to try it with."""
    from hopbench.flows.api.corpus import open_corpus

    corpus = open_corpus(choice.options)
    folder = corpus.export(out, choice.label)
    example = next(iter(corpus.questions.values()), corpus.passages[0].title or corpus.passages[0].text)
    return folder, corpus.name, example


@with_flags(GraphOptions, without=("dataset",))
def export_command(
    target: Annotated[
        str,
        argument(
            metavar="LABEL|best.yaml|champion",
            help="A label, the best.yaml of a sweep, or champion: the data set's.",
            values="label",
        ),
    ],
    out: Annotated[Path, option(OUTPUT, help="The folder to write.")],
    dataset: Annotated[
        str | None,
        option(DATA, help="The corpus (default: the one best.yaml names, else hopworld).", values="datasets"),
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
    from hopbench.flows.settings.home import Home

    choice = chosen(target, GraphOptions(dataset=dataset or "hopworld", **flags), dataset)
    folder, name, question = export(choice, out)
    echo(f"exported  {folder}  ({choice.label} on {name})")
    echo(f"use it    retriever = hopbench.load({str(folder)!r}); retriever({question!r}, k=5)")
    if register:
        from hopbench.flows.settings.home import Home
        from hopbench.flows.tracking.registry import register as register_model

        registered = register_model(Home.resolve(), folder, name, choice.label, question)
        echo(f"model     {registered.uri}  (version {registered.version})")
        echo(f"serve it  mlflow models serve --model-uri {registered.uri} --env-manager local")

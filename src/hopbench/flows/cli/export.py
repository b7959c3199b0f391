"""`hopbench export LABEL|best.yaml|champion`: the winner as a folder that answers questions anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from hopbench.flows.cli.flags import Config, argument, option, with_flags
from hopbench.flows.cli.output import echo
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.setting import DATA, OUTPUT
from hopbench.retrieval.support.errors import InputError

CHAMPION = "champion"
YAML = (".yaml", ".yml")


def chosen(target: str, options: GraphOptions, dataset: str | None) -> tuple[str, GraphOptions]:
    """The label and the graph that `target` names: a label, a sweep's best.yaml, or `champion` (of the data set).

    A best.yaml decides the graph; `dataset` takes the place of the one it names. Raises InputError where the file
    names no single label, or a language model, which an exported retriever does not ask.
    """
    from hopbench.eval.trials.ledger import Ledger
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.support.input_files import read_yaml

    if target.endswith(YAML):
        content = read_yaml(Path(target))
        if not isinstance(content, dict) or not isinstance(content.get("strategies"), str):
            raise InputError(f"{target}: names no label under strategies: name the best.yaml that a sweep wrote")
        if content.get("llm"):
            raise InputError(
                f"{target}: llm {content['llm']!r}: an exported retriever asks no language model; sweep without "
                "--llm, or export the label itself"
            )
        place = dataset or content.get("dataset") or "hopworld"
        return content["strategies"], GraphOptions.from_settings(content, place)
    if target != CHAMPION:
        return target, options
    digest = options.benchmark().digest
    with Ledger.open(Home.resolve().prepare().ledger) as ledger:
        champion = ledger.champion_of(digest)
    if champion is None:
        raise InputError(
            f"{options.dataset} has no champion: name a label, or let hopbench sweep --champion or a nightly name one"
        )
    return champion.label, options


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
    from hopbench.flows.api.corpus import open_corpus

    label, options = chosen(target, GraphOptions(dataset=dataset or "hopworld", **flags), dataset)
    corpus = open_corpus(options)
    folder = corpus.export(out, label)
    question = next(iter(corpus.questions.values()), corpus.passages[0].title or corpus.passages[0].text)
    echo(f"exported  {folder}  ({label} on {corpus.name})")
    echo(f"use it    retriever = hopbench.load({str(folder)!r}); retriever({question!r}, k=5)")
    if register:
        from hopbench.flows.settings.home import Home
        from hopbench.flows.tracking.registry import register as register_model

        uri, version = register_model(Home.resolve(), folder, corpus.name, label, question)
        echo(f"model     {uri}  (version {version})")
        echo(f"serve it  mlflow models serve --model-uri {uri} --env-manager local")

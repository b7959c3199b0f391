"""What `hopbench export` takes home: a label, the winner of a sweep, or a data set's champion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hopbench.eval.trials.ledger import Ledger
from hopbench.flows.api.corpus import open_corpus
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import read_yaml

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
    corpus = open_corpus(choice.options)
    folder = corpus.export(out, choice.label)
    example = next(iter(corpus.questions.values()), corpus.passages[0].title or corpus.passages[0].text)
    return folder, corpus.name, example

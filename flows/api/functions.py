"""The functions of the Python API: thin callers of what the command line calls too (docs/api.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from hopbench.flows.api.corpus import Corpus, open_corpus
from hopbench.flows.api.runs import Run, default_folder
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.bundle import read_bundle
from hopbench.retrieval.retriever import Retriever

PathLike = str | os.PathLike[str]


class GraphSettings(TypedDict, total=False):
    """Which graph of a data set: the flags of `hopbench graph build`, by the same names (docs/graph.md).

    What is left out has the command line's default.
    """

    store: str
    embedder: str
    extractor: str
    triples: PathLike | None
    questions: PathLike | None
    limit: int | None
    mapping: PathLike | None
    llm: str | None
    gleaning: int
    neo4j_vector_index: bool
    similar_top_k: int | None
    similar_floor: float | None
    max_tokens: int | None


PATHS = ("triples", "mapping", "questions")


def open(dataset: PathLike, **graph: Unpack[GraphSettings]) -> Corpus:
    """Open a corpus with its graph, which is built first where it is missing.

    `dataset` is what `--dataset` takes: a shipped benchmark's name, a folder, a file, a Hub name. The graph is kept in
    the home (`HOPBENCH_HOME`, default `./.hopbench`), so the next call finds it.

    Raises InputError for a data set that cannot be read, an unknown store, embedder or extractor.

    >>> import hopbench
    >>> corpus = hopbench.open("hopworld")                                                         # doctest: +SKIP
    >>> corpus.retrieve("Which river flows through the birthplace of …?", k=3)                     # doctest: +SKIP
    """
    return open_corpus(GraphOptions(dataset=os.fspath(dataset), **_graph(graph)))


def load(folder: PathLike) -> Retriever:
    """The retriever that `hopbench export` or `Corpus.export` wrote; it answers exactly as there.

    Raises InputError where the folder holds none, is damaged, or this installation would rank otherwise.
    """
    return read_bundle(Path(folder))


def run(
    dataset: PathLike,
    strategies: str | Sequence[str] = "all",
    *,
    out: PathLike | None = None,
    changes: Sequence[str] = (),
    ragas: bool = True,
    targets: Sequence[str] = (),
    metrics: Sequence[str] = (),
    seed: int = 0,
    prefect: bool = False,
    **graph: Unpack[GraphSettings],
) -> Run:
    """Run strategies over a data set's questions, as `hopbench run` does.

    `strategies` are labels (`hoprank`, `pagerank[restart=0.3]`, `all`, `all:tuned`), `changes` lines like those of
    `--set`, `targets` like those of `--target`, `metrics` those to measure beside the usual ones (`recall@7`). Files
    go to `out` (default: a new folder in the home's `runs`); the run is tracked in MLflow. With `prefect`, it is a flow
    run on a Prefect server.

    Raises InputError for anything that cannot be used as given, before any work begins; IncompleteError where the work
    stopped and the same call goes on.
    """
    from hopbench.flows.run.evaluate import run as run_strategies

    home, name = Home.resolve(), Path(dataset).name
    options = RunOptions(
        dataset=os.fspath(dataset),
        strategies=strategies if isinstance(strategies, str) else ",".join(strategies),
        out=Path(out) if out is not None else default_folder(home.root, name),
        changes=changes,
        ragas=ragas,
        targets=targets,
        metrics=metrics,
        seed=seed,
        prefect=prefect,
        command="hopbench run (Python)",
        **_graph(graph),
    )
    finished = run_strategies(options)
    return Run(options.out, finished.warnings)


def load_run(folder: PathLike) -> Run:
    """A finished run, by its --out folder. Raises InputError where the folder holds none or is damaged."""
    return Run(Path(folder))


def _graph(settings: GraphSettings) -> dict[str, Any]:
    """The settings as options take them: paths as paths."""
    return {
        name: Path(value) if name in PATHS and value is not None else value  # type: ignore[arg-type]
        for name, value in settings.items()
    }

"""The functions of the Python API: thin callers of what the command line calls too (docs/api.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypedDict, Unpack

from hopbench.flows.api.corpus import Corpus, open_corpus
from hopbench.flows.api.runs import Run, Sweep, default_folder
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.bundle import read_bundle
from hopbench.retrieval.external import Function, Retrieve
from hopbench.retrieval.llm.endpoint import asked_of
from hopbench.retrieval.retriever import Retriever
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError, UnknownNameError

PathLike = str | os.PathLike[str]


class GraphSettings(TypedDict, total=False):
    """Which graph of a data set: the flags of `hopbench graph build`, by the same names.

    What is left out has the command line's default.
    """

    store: str
    embedder: str
    extractor: str
    triples: PathLike | None
    questions: PathLike | None
    limit: int | None
    min_grade: int
    strict: bool
    mapping: PathLike | None
    llm: str | None
    reasoning_effort: str | None
    completion_tokens: int | None
    gleaning: int
    neo4j_vector_index: bool
    dense: str | None
    similar: str | None
    similar_top_k: int | None
    similar_floor: float | None
    max_tokens: int | None
    language: str | None


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
    retrievers: Mapping[str, str | Retrieve] | None = None,
    runs: Mapping[str, PathLike] | None = None,
    judge: str | None = None,
    prefect: bool = False,
    **graph: Unpack[GraphSettings],
) -> Run:
    """Run strategies over a data set's questions, as `hopbench run` does.

    `strategies` are labels (`hoprank`, `pagerank[restart=0.3]`, `all`, `all:tuned`), `changes` lines like those of
    `--set`, `targets` like those of `--target`, `metrics` those to measure beside the usual ones (`recall@7`).
    `retrievers` puts others beside them, by label: a function of (questions, k) that returns passage ids for each
    question, best first, or the URL of an endpoint; `runs` the files of rankings made elsewhere
    (docs/your-retriever.md). With `llm` a model reads, with `judge` one judges.

    Files go to `out` (default: a new folder in the home's `runs`); the run is tracked in MLflow. With `prefect`, it is
    a flow run on a Prefect server.

    Raises InputError for anything that cannot be used as given, before any work begins; IncompleteError where the work
    stopped and the same call goes on.
    """
    from hopbench.flows.run.evaluate import run as run_strategies

    home, name = Home.resolve(), Path(dataset).name
    given, settings = retrievers or {}, _graph(graph)
    options = RunOptions(
        dataset=os.fspath(dataset),
        strategies=_labels(strategies),
        out=Path(out) if out is not None else default_folder(home.runs, name),
        changes=changes,
        ragas=ragas,
        targets=targets,
        metrics=metrics,
        seed=seed,
        retrievers=[f"{label}={value}" for label, value in given.items() if isinstance(value, str)],
        functions={label: Function(retrieve=value) for label, value in given.items() if not isinstance(value, str)},
        runs=[f"{label}={os.fspath(file)}" for label, file in (runs or {}).items()],
        models=ModelOptions(judge=judge, llm=graph.get("llm"), **asked_of(graph)),
        prefect=prefect,
        command="hopbench run (Python)",
        **settings,
    )
    finished = run_strategies(options)
    return Run(options.out, finished.warnings)


def sweep(file: PathLike | Mapping[str, Any], out: PathLike, *, champion: bool = False, prefect: bool = False) -> Sweep:
    """Search a space of configurations, as `hopbench sweep` does; finished trials are kept and reused.

    `file` is a sweep file (docs/sweeps.md) or its content as a mapping, which is written to `out/sweep.yaml`. With
    `champion`, the winner becomes the champion of the benchmark under `report_on`.

    Raises InputError for a file that cannot be used, IncompleteError where the work stopped and the same call goes on.
    """
    from hopbench.eval.sweep.plan import read_sweep
    from hopbench.flows.sweeps.flow import sweep as run_sweep
    from hopbench.flows.sweeps.inputs import plan_of_content

    folder = Path(out)
    given = plan_of_content(file, folder) if isinstance(file, Mapping) else nullcontext(read_sweep(Path(file)))
    with given as plan:
        swept = run_sweep(plan, folder, prefect=prefect, champion=champion)
    return Sweep(folder, [*swept.warnings, *swept.incomplete])


def register(strategy: type[Strategy]) -> type[Strategy]:
    """Make a strategy class of one's own usable by its name, in this process; usable as a decorator.

    A package offers its strategies to every process by an entry point instead (docs/plugins.md). Raises InputError
    where the class cannot be used or its name is taken by one of ours or of a package.
    """
    from hopbench.retrieval.strategies.registry import registry

    return registry().add(strategy.name, strategy)


def load_run(folder: PathLike) -> Run:
    """A finished run, by its --out folder. Raises InputError where the folder holds none or is damaged."""
    return Run(Path(folder))


def _labels(strategies: str | Sequence[str]) -> str:
    """Labels as `--strategies` takes them."""
    if isinstance(strategies, str):
        return strategies
    other = next((label for label in strategies if not isinstance(label, str)), None)
    if other is not None:
        raise InputError(f"strategies: {other!r} is no label: write a name (hopbench.register gives a class one)")
    return ",".join(strategies)


def _graph(settings: GraphSettings) -> dict[str, Any]:
    """The settings as options take them: paths as paths. Raises UnknownNameError for a keyword that is none."""
    known = GraphSettings.__annotations__
    for name in settings:
        if name not in known:
            raise UnknownNameError("graph setting", name, known)
    return {
        name: Path(value) if name in PATHS and value is not None else value  # type: ignore[arg-type]
        for name, value in settings.items()
    }

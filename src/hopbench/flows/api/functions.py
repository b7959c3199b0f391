"""The functions of the Python API: thin callers of what the command line calls too (docs/api.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hopbench.flows.api.corpus import Corpus, open_corpus
from hopbench.flows.api.runs import Run, Sweep, default_folder
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.bundle import read_bundle
from hopbench.retrieval.external import Function, Retrieve
from hopbench.retrieval.retriever import Retriever
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError

PathLike = str | os.PathLike[str]


def open(dataset: PathLike, **settings: Any) -> Corpus:
    """Open a corpus with its graph, which is built first where it is missing.

    The graph is kept in the home (`HOPBENCH_HOME`, default `./.hopbench`), so the next call finds it.

    Args:
        dataset: What `--dataset` takes: a shipped benchmark's name, a folder, a file, a Hub name.
        **settings: The flags of `hopbench graph build` by the same names, such as `embedder`, `store`, `limit`; what
            is left out has the command line's default.

    Returns:
        The corpus, ready to be asked.

    Raises:
        InputError: For a data set that cannot be read, an unknown setting, store, embedder or extractor.

    Example:
        >>> import hopbench
        >>> corpus = hopbench.open("hopworld", embedder="wordllama")                               # doctest: +SKIP
        >>> corpus.retrieve("Which river flows through the birthplace of …?", k=3)                 # doctest: +SKIP
    """
    return open_corpus(GraphOptions(dataset=os.fspath(dataset), **settings))


def load(folder: PathLike) -> Retriever:
    """Load the retriever that `hopbench export` or `Corpus.export` wrote; it answers exactly as there.

    Args:
        folder: The exported folder; it may be read-only.

    Returns:
        The retriever, which needs neither Prefect nor MLflow.

    Raises:
        InputError: Where the folder holds none, is damaged, or this installation would rank otherwise.

    Example:
        >>> retriever = hopbench.load("taken")                                                     # doctest: +SKIP
        >>> retriever("Who founded Hahom Academy?", k=3).ids                                       # doctest: +SKIP
    """
    return read_bundle(Path(folder))


def run(
    dataset: PathLike,
    strategies: str | Sequence[str] = "all",
    *,
    out: PathLike | None = None,
    retrievers: Mapping[str, str | Retrieve] | None = None,
    runs: Mapping[str, PathLike] | None = None,
    prefect: bool = False,
    **settings: Any,
) -> Run:
    """Run strategies over a data set's questions, as `hopbench run` does; the run is tracked in MLflow.

    Args:
        dataset: What `--dataset` takes: a shipped benchmark's name, a folder, a file, a Hub name.
        strategies: Labels: `hoprank`, `pagerank[restart=0.3]`, `all`, `all:tuned`.
        out: Folder for the files (default: a new one in the home's `runs`).
        retrievers: Others to put beside them, by label: a function of (questions, k) that returns passage ids for each
            question, best first, or the URL of an endpoint.
        runs: Files of rankings made elsewhere, by label (docs/your-retriever.md).
        prefect: Whether it is a flow run on a Prefect server.
        **settings: More settings of a run: those of `open`, `changes` (`--set`), `targets`, `metrics`, `judge`, ….

    Returns:
        The finished run.

    Raises:
        InputError: For anything that cannot be used as given, before any work begins.
        IncompleteError: Where the work stopped and the same call goes on.

    Example:
        >>> run = hopbench.run("hopworld", ["bm25", "hoprank"], limit=40)                          # doctest: +SKIP
        >>> run.leaderboard()                                                                      # doctest: +SKIP
    """
    from hopbench.flows.run.evaluate import run as run_strategies

    given = retrievers or {}
    if other := [one for one in strategies if not isinstance(one, str)]:
        raise InputError(f"strategies: {other[0]!r} is no label: write a name (hopbench.register gives a class one)")
    values: dict[str, Any] = {
        "dataset": os.fspath(dataset),
        "strategies": strategies,
        "out": out if out is not None else default_folder(Home.resolve().runs, Path(dataset).name),
        "retrievers": [f"{label}={value}" for label, value in given.items() if isinstance(value, str)],
        "functions": {label: Function(retrieve=value) for label, value in given.items() if not isinstance(value, str)},
        "runs": [f"{label}={os.fspath(file)}" for label, file in (runs or {}).items()],
        "no_prefect": not prefect,
        "command": "hopbench run (Python)",
    }
    options = RunOptions(**settings, **values)
    return Run(options.out, run_strategies(options).warnings)


def sweep(file: PathLike | Mapping[str, Any], out: PathLike, *, champion: bool = False, prefect: bool = False) -> Sweep:
    """Search a space of configurations, as `hopbench sweep` does; finished trials are kept and reused.

    Args:
        file: A sweep file (docs/sweeps.md) or its content as a mapping, which is written to `out/sweep.yaml`.
        out: The sweep's folder.
        champion: Whether the winner becomes the champion of the benchmark under `report_on`.
        prefect: Whether it is a flow run on a Prefect server.

    Returns:
        The finished sweep: its trials and its winner.

    Raises:
        InputError: For a file that cannot be used.
        IncompleteError: Where the work stopped and the same call goes on.

    Example:
        >>> space = {"datasets": ["hopworld-tune"], "strategy": "pagerank", "grid": {"restart": [0.1, 0.3]}}
        >>> hopbench.sweep(space, "tuning").trials()                                               # doctest: +SKIP
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

    A package offers its strategies to every process by an entry point instead (docs/plugins.md).

    Args:
        strategy: The class; its `name` becomes the label.

    Returns:
        The class itself.

    Raises:
        InputError: Where the class cannot be used or its name is taken by one of ours or of a package.

    Example:
        >>> @hopbench.register                                                                     # doctest: +SKIP
        ... class Mine(BM25):
        ...     name = "mine"
        ...     summary = "bm25 under another name"
    """
    from hopbench.retrieval.strategies.registry import registry

    return registry().add(strategy.name, strategy)


def load_run(folder: PathLike) -> Run:
    """Open a finished run.

    Args:
        folder: The run's --out folder.

    Returns:
        The run with its tables, comparisons and report.

    Raises:
        InputError: Where the folder holds none or is damaged.

    Example:
        >>> hopbench.load_run("out").compare("bm25", "hoprank").to_frame()                         # doctest: +SKIP
    """
    return Run(Path(folder))

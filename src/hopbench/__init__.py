"""HopBench measures graph-expansion retrieval for multi-hop questions.

>>> import hopbench
>>> corpus = hopbench.open("hopworld")                                                             # doctest: +SKIP
>>> run = hopbench.run("hopworld", ["bm25", "hoprank"])                                            # doctest: +SKIP
>>> run.leaderboard()                                                                              # doctest: +SKIP

The names below are the public API (docs/api.md); each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopbench.flows.api.corpus import Corpus as Corpus
    from hopbench.flows.api.corpus import Explanation as Explanation
    from hopbench.flows.api.functions import load as load
    from hopbench.flows.api.functions import load_run as load_run
    from hopbench.flows.api.functions import open as open
    from hopbench.flows.api.functions import register as register
    from hopbench.flows.api.functions import run as run
    from hopbench.flows.api.functions import sweep as sweep
    from hopbench.flows.api.runs import Run as Run
    from hopbench.flows.api.runs import Sweep as Sweep
    from hopbench.retrieval.retriever import Retrieved as Retrieved
    from hopbench.retrieval.retriever import RetrievedPassage as RetrievedPassage
    from hopbench.retrieval.retriever import Retriever as Retriever
    from hopbench.retrieval.support.errors import HopBenchError as HopBenchError

    __version__: str

_HOME_OF = {
    "Corpus": "hopbench.flows.api.corpus",
    "Explanation": "hopbench.flows.api.corpus",
    "HopBenchError": "hopbench.retrieval.support.errors",
    "Retrieved": "hopbench.retrieval.retriever",
    "RetrievedPassage": "hopbench.retrieval.retriever",
    "Retriever": "hopbench.retrieval.retriever",
    "Run": "hopbench.flows.api.runs",
    "Sweep": "hopbench.flows.api.runs",
    "load": "hopbench.flows.api.functions",
    "load_run": "hopbench.flows.api.functions",
    "open": "hopbench.flows.api.functions",
    "register": "hopbench.flows.api.functions",
    "run": "hopbench.flows.api.functions",
    "sweep": "hopbench.flows.api.functions",
}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - derived, so that no name is listed twice


def __getattr__(name: str) -> Any:
    """A public name, loaded now: `import hopbench` itself loads nothing heavy."""
    if name == "__version__":
        from importlib.metadata import version

        return version("hopbench")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hopbench' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, "__version__"]

"""All kinds of plug-ins together, for lists and checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hopbench.retrieval.plugins.code import PluginCode
from hopbench.retrieval.plugins.registry import Registry


@dataclass(frozen=True)
class Plugin:
    """A plug-in that can be used: its kind in a word, its name, and its package's code."""

    kind: str
    name: str
    code: tuple[PluginCode, ...]

    @property
    def package(self) -> str:
        """`hopbench-mine 1.0+0f343b093112`."""
        return ", ".join(map(str, self.code))


def registries() -> dict[str, Registry[Any]]:
    """The registry of each kind; this loads them."""
    from hopbench.eval.benchmarks.formats import loaders
    from hopbench.eval.metrics import catalogue
    from hopbench.retrieval.embedding.factory import embedders
    from hopbench.retrieval.graph.construction.extraction import extractors
    from hopbench.retrieval.strategies.registry import registry
    from hopbench.retrieval.strategies.reranker import rerankers

    return {
        "strategy": registry(),
        "reranker": rerankers(),
        "metrics": catalogue().registry,
        "loader": loaders(),
        "embedder": embedders(),
        "extractor": extractors(),
    }


def installed_plugins() -> Iterator[Plugin]:
    """All plug-ins that can be used, by kind."""
    for kind, known in registries().items():
        yield from (Plugin(kind, name, known.code_of(name)) for name in known.plugins())


def broken_plugins() -> Iterator[tuple[str, str, str]]:
    """Kind, name and reason of all plug-ins that cannot be used."""
    for kind, known in registries().items():
        yield from ((kind, name, reason) for name, reason in known.broken.items())

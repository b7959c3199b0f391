"""Rerankers: a second stage that reads the question beside each of a strategy's first passages and orders them anew.

Source: Nogueira and Cho, Passage Re-ranking with BERT, 2019 (arXiv 1901.04085).
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from hopbench.retrieval.plugins.groups import RERANKERS
from hopbench.retrieval.plugins.registry import Registry
from hopbench.retrieval.strategies.parameters import Bounds, Parameters, param
from hopbench.retrieval.support.errors import InputError

BUILT_IN: Mapping[str, str] = {}
"""Name → `module:class`; an entry point of a package has the same form. HopBench ships none."""


@dataclass(frozen=True, kw_only=True)
class Reranker(Parameters, ABC):
    """Scores passages for a question. Subclasses are frozen dataclasses whose fields are declared with `param`."""

    name: ClassVar[str]
    summary: ClassVar[str]

    depth: int = param(50, "how many of the first passages are ranked anew", 1, 100)

    @abstractmethod
    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """The relevance of each (question, passage), any finite number, higher is better; in the order of the pairs.

        A call holds the pairs of many questions. Equal scores keep the order of the strategy.
        """


@cache
def rerankers() -> Registry[type[Reranker]]:
    """The rerankers that installed packages offer under the entry point `hopbench.rerankers`."""
    return Registry("reranker", RERANKERS, BUILT_IN, _usable)


def _usable(name: str, reranker: object) -> type[Reranker]:
    """Refuse what cannot be a reranker: another type, or a class without name, summary or bounds."""
    if not (isinstance(reranker, type) and issubclass(reranker, Reranker)):
        raise InputError("it is no Reranker class")
    if getattr(reranker, "name", None) != name or not isinstance(getattr(reranker, "summary", None), str):
        raise InputError(f"it needs a `name`, which is that of its entry point ({name!r}), and a `summary`")
    if set(name) & set(":,+[]"):
        raise InputError(f"its name {name!r} cannot stand in a label: leave out : , + [ and ]")
    if inspect.isabstract(reranker):
        raise InputError(f"it lacks {', '.join(sorted(reranker.__abstractmethods__))}")
    for field, spec in reranker.parameters().items():
        if not isinstance(spec.metadata.get("bounds"), Bounds) or spec.default is dataclasses.MISSING:
            raise InputError(f"its field {field!r} has no default and bounds: declare it with param(…)")
    return reranker

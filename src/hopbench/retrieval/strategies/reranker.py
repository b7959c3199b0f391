"""Rerankers: a second stage that reads the question beside each of a strategy's first passages and orders them anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.index import Batch
from hopbench.retrieval.plugins.registry import RERANKERS, Registry
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.parameters import Parameters, checked, param
from hopbench.retrieval.types import Counters, Hit, Ranking

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

    def usable(name: str, offered: object) -> type[Reranker]:
        return checked(Reranker, name, offered)  # type: ignore[type-abstract]

    return Registry("reranker", RERANKERS, BUILT_IN, usable)


PREFIX = "reranker"
_FROM_BASE = ("edges", "kind", "timing", "foreign")


@dataclass(frozen=True, kw_only=True)
class Reranked(Strategy):
    """The first `depth` hits of `base` in the order of the reranker's scores, then the others as they were.

    It has no parameters of its own: those of both parts stand in its `spec`.
    """

    base: Strategy
    reranker: Reranker
    fill: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        # The base's name, edges and kind are an instance's here, a class's elsewhere.
        named = {"name": f"{self.base.name}+{self.reranker.name}", "summary": self.reranker.summary}
        for name, value in {**named, **{name: getattr(self.base, name) for name in _FROM_BASE}}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def parameters(cls) -> Mapping[str, Field[Any]]:
        """None: sweeps and `explain` vary the base's."""
        return {}

    def spec(self) -> dict[str, Any]:
        """The parameters of the base, and the reranker's as `reranker.NAME`."""
        return {**self.base.spec(), **self._second()}

    def identity(self) -> dict[str, Any]:
        """The base's identity, and the reranker with its parameters."""
        return {**self.base.identity(), **self._second()}

    def _second(self) -> dict[str, Any]:
        own = {f"{PREFIX}.{name}": value for name, value in self.reranker.spec().items()}
        return {PREFIX: self.reranker.name, **own}

    def implementations(self) -> Sequence[type[Any]]:
        """The classes of both parts."""
        return (*self.base.implementations(), type(self.reranker))

    def shared_work(self) -> tuple[str, ...]:
        """The base's: reranking shares nothing."""
        return self.base.shared_work()

    def lowest_weights(self) -> Mapping[str, float]:
        """The base's."""
        return self.base.lowest_weights()

    def fitted_on(self) -> Sequence[FittedOn]:
        """The base's."""
        return self.base.fitted_on()

    def initial(self, batch: Batch) -> list[Scored]:
        """The base's."""
        return self.base.initial(batch)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The base's rankings, completed where it completes them, with their first hits in the reranker's order."""
        rankings = self.base.rank(batch, counters)
        texts = {question.id: question.text for question in batch.questions}
        chunks, row_of = batch.index.chunks, batch.index.row_of
        pairs = [
            (texts[ranking.question_id], chunks[row_of[hit.chunk_id]].content)
            for ranking in rankings
            for hit in ranking.hits[: self.reranker.depth]
        ]
        scores = np.asarray(self.reranker.score(pairs) if pairs else [], dtype=float)
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise ValueError(  # fails the questions of the call, each with this reason
                f"the reranker {self.reranker.name!r} returned scores of the shape {scores.shape}, or not finite, for "
                f"{len(pairs)} passages"
            )
        begin = 0
        for ranking in rankings:
            end = begin + len(ranking.hits[: self.reranker.depth])
            ranking.hits = _reordered(ranking.hits, scores[begin:end].tolist())
            ranking.notes = {**ranking.notes, "reranked": f"the first {end - begin} by {self.reranker.name}"}
            begin = end
        return rankings


def _reordered(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Hits by score, equals in their old order, then those without one; every component stays, the old score too."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])  # stable
    first = [
        replace(hits[place], score=scores[place], components={**hits[place].components, "first": hits[place].score})
        for place in order
    ]
    lowest = min(scores, default=0.0)
    rest = [replace(hit, score=lowest - rank * 1e-6) for rank, hit in enumerate(hits[len(scores) :], 1)]
    return [*first, *rest]

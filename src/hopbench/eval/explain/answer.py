"""One question's ranking by one strategy, in passages, with what led to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hopbench.eval.trials.trial import to_passages
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.types import Counters, Hit

FILL = "fill"


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage at its rank (from 1), by the first of its chunks."""

    passage: str
    rank: int
    hit: Hit

    @property
    def candidate(self) -> bool:
        """Whether the strategy itself ranked it; the rest only completes a short ranking."""
        return self.hit.origin != FILL


@dataclass(frozen=True)
class Answer:
    """A strategy's ranking of one question. `seeds` are passages, best first; `initial` is passage → initial rank.

    `context` is what a reader would get, within the budget that all strategies share.
    """

    label: str
    strategy: Strategy
    places: Sequence[RankedPassage] = ()
    seeds: Sequence[str] = ()
    initial: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    failure: str | None = None
    context: PassageRanking | None = None

    @cached_property
    def _place_of(self) -> Mapping[str, RankedPassage]:
        return {place.passage: place for place in self.places}

    def place(self, passage: str) -> RankedPassage | None:
        """A passage with its rank and hit; None when it is not in the ranking."""
        return self._place_of.get(passage)

    def rank(self, passage: str) -> int | None:
        """The rank of a passage, from 1."""
        place = self.place(passage)
        return place.rank if place else None


def answer(label: str, strategy: Strategy, batch: Batch) -> Answer:
    """Rank the batch's one question. A strategy's exception becomes `failure`; HopBenchErrors are raised."""
    counters = Counters()
    try:
        (ranking,) = strategy.rank(batch, counters)
    except HopBenchError:
        raise
    except Exception as error:  # a strategy may raise anything; its reason is what is to be explained then
        return Answer(label, strategy, counters=counters, failure=f"{type(error).__name__}: {error}")
    if ranking.failure is not None:
        return Answer(label, strategy, counters=counters, failure=ranking.failure)
    return Answer(
        label,
        strategy,
        places(ranking.hits, batch.index),
        tuple(dict.fromkeys(batch.index.passage_of[chunk] for chunk in ranking.seeds)),
        _initial_ranks(strategy, batch),
        ranking.notes,
        counters,
        context=to_passages(ranking, batch.index, Budget()),
    )


def places(hits: Sequence[Hit], index: Index) -> tuple[RankedPassage, ...]:
    """Chunks as passages: a passage ranks where its first chunk does."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(index.passage_of[hit.chunk_id], hit)
    return tuple(RankedPassage(passage, rank, hit) for rank, (passage, hit) in enumerate(first.items(), 1))


def _initial_ranks(strategy: Strategy, batch: Batch) -> dict[str, int]:
    (scored,) = strategy.initial(batch)
    unique = dict.fromkeys(batch.index.passage_of[chunk] for chunk, _ in scored)
    return {passage: rank for rank, passage in enumerate(unique, 1)}

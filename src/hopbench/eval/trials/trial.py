"""A trial: one strategy over all questions, whole or in units that workers share, with its cost.

A question that cannot be ranked becomes a row with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopbench.eval.types import PassageRanking
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError, exhausted
from hopbench.retrieval.support.timing import once_apart
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import DETAILED, Counters, Hit, Question, Ranking, scored

BATCH_SIZE = 1000  # questions


def rank_batch(strategy: Strategy, batch: Batch, counters: Counters) -> list[Ranking]:
    """Rank a batch and add its cost to `counters`; where it fails, rank each of its questions alone.

    A question that fails alone gets an empty ranking with the failure. Raises HopBenchError, and errors that would stop
    every question, such as a full disk.
    """
    spent = Counters()
    try:
        rankings = strategy.rank(batch, spent)
    except Exception as error:  # a strategy may raise anything
        return rank_after_failure(error, strategy, batch, counters)
    counters.add(spent)
    return rankings


def rank_after_failure(error: Exception, strategy: Strategy, batch: Batch, counters: Counters) -> list[Ranking]:
    """Rank the questions of a batch one by one after the whole failed with `error` (see `rank_batch`)."""
    if isinstance(error, HopBenchError):
        raise error
    if len(batch.questions) == 1:
        if (lacking := exhausted(error)) is not None:
            raise lacking from error  # nothing that this question caused
        return [Ranking(batch.questions[0].id, failure=f"{type(error).__name__}: {error}")]
    singles = [Batch(batch.index, [question]) for question in batch.questions]
    return [ranking for single in singles for ranking in rank_batch(strategy, single, counters)]


@dataclass
class TrialOutcome:
    """The results and costs of a trial. `hits` (the first 20), `notes` and the sampled `latency_ms` are by question id.

    `seconds` are those of the questions; work done once for the index is in `once_seconds`. `pace` is the latency
    relative to the yardstick, see `hopbench.eval.trials.latency.measure_paced`. A worker's part of a trial has the time
    that it spent on what all labels share in its batch in `shared_seconds`.
    """

    label: str
    strategy: str
    parameters: Mapping[str, Any]
    rankings: dict[str, PassageRanking] = field(default_factory=dict)
    hits: dict[str, Sequence[Hit]] = field(default_factory=dict)
    notes: dict[str, Mapping[str, object]] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    seconds: float = 0.0
    once_seconds: float = 0.0
    latency_ms: dict[str, float] = field(default_factory=dict)
    pace: dict[str, float] = field(default_factory=dict)
    shared_seconds: float = 0.0

    @property
    def failures(self) -> int:
        """Questions without a ranking."""
        return sum(ranking.failure is not None for ranking in self.rankings.values())

    @property
    def context_tokens(self) -> float:
        """Mean tokens of a question's context, over the questions with a ranking."""
        counts = [count_tokens(one.context) for one in self.rankings.values() if one.failure is None]
        return round(float(np.mean(counts)), 2) if counts else 0.0

    def add(self, ranking: Ranking, index: Index, budget: Budget) -> None:
        """Add one question's ranking of chunks, as passages and with the context that fits into the budget."""
        self.rankings[ranking.question_id] = to_passages(ranking, index, budget)
        self.hits[ranking.question_id] = list(ranking.hits[:DETAILED])
        self.notes[ranking.question_id] = ranking.notes


def batches(index: Index, questions: Sequence[Question], size: int | None = None, *, processes: int = 1) -> list[Batch]:
    """Questions in batches of `size`, 1,000 at most; strategies share what a batch computes.

    `processes` is how many processes may divide a batch among themselves (`Batch`).
    """
    size = min(size or BATCH_SIZE, BATCH_SIZE)
    parts = (questions[begin : begin + size] for begin in range(0, len(questions), size))
    return [Batch(index, part, processes=processes) for part in parts]


def prepare(parts: Sequence[Batch]) -> float:
    """Compute what all trials share (question vectors, BM25 and dense candidates); returns the seconds it took."""
    started = time.perf_counter()
    for batch in parts:
        _ = batch.dense, batch.lexical
    return time.perf_counter() - started


@dataclass
class Trial:
    """One strategy over all questions, in batches; `run` fills in `outcome`.

    It returns nothing, so that a scheduler that calls it has nothing to copy, hash or keep. `time_calls`, if given,
    measures single calls afterwards and adds latency and pace (see `hopbench.eval.trials.latency.measure_paced`).
    """

    label: str
    strategy: Strategy
    parts: Sequence[Batch]
    budget: Budget
    time_calls: Callable[[TrialOutcome], object] | None = None
    outcome: TrialOutcome = field(init=False)

    def __post_init__(self) -> None:
        """Begin with an empty outcome."""
        self.outcome = TrialOutcome(self.label, self.strategy.name, self.strategy.spec())

    def run(self) -> None:
        """Rank all questions. Raises only what stops every question (a lost store, a bad parameter)."""
        for batch in self.parts:
            started, spent = time.perf_counter(), Counters()
            # As `rank_batch` does, which would be one more frame in every traceback from a strategy.
            with once_apart() as once:
                try:
                    rankings = self.strategy.rank(batch, spent)
                except Exception as error:
                    rankings = rank_after_failure(error, self.strategy, batch, self.outcome.counters)
                else:
                    self.outcome.counters.add(spent)
            self.outcome.seconds += time.perf_counter() - started - once.seconds
            self.outcome.once_seconds += once.seconds
            for ranking in rankings:
                self.outcome.add(ranking, batch.index, self.budget)
        if self.time_calls is not None:
            self.time_calls(self.outcome)


def run_trial(label: str, strategy: Strategy, parts: Sequence[Batch], budget: Budget) -> TrialOutcome:
    """Rank all questions with one strategy: `Trial.run`, without timing single calls."""
    trial = Trial(label, strategy, parts, budget)
    trial.run()
    return trial.outcome


def to_passages(ranking: Ranking, index: Index, budget: Budget) -> PassageRanking:
    """Map chunks to passages (a passage ranks where its first chunk does) and fit the context into the budget."""
    if ranking.failure is not None:
        return PassageRanking(ranking.question_id, failure=ranking.failure)
    best: dict[str, float] = {}
    hits = list(scored(ranking.hits))
    for chunk, score in hits:
        best.setdefault(index.passage_of[chunk], score)
    ranked = [index.chunks[index.row_of[chunk]] for chunk, _ in hits[: budget.chunks]]
    read, parts = budget.parts(ranked, ranking.graph_context)
    return PassageRanking(
        ranking.question_id,
        tuple(best),
        tuple(best.values()),
        tuple(dict.fromkeys(chunk.passage_id for chunk in read)),
        "\n\n".join(parts),
        tuple(dict.fromkeys(index.passage_of[chunk] for chunk in ranking.seeds)),
        context_parts=tuple(parts),
        graph_context=parts[0] if ranking.graph_context and parts else "",
    )


class Unit(NamedTuple):
    """The work of one worker at a time: batch number `part` of a label's questions."""

    part: int
    label: str

    @property
    def title(self) -> str:
        """What Prefect shows."""
        return f"trial {self.label} batch {self.part}"


def run_unit(label: str, strategy: Strategy, batch: Batch, budget: Budget) -> TrialOutcome:
    """Rank one batch with one strategy."""
    known = "dense" in vars(batch) and "lexical" in vars(batch)
    shared = 0.0 if known else prepare([batch])
    outcome = run_trial(label, strategy, [batch], budget)
    outcome.shared_seconds = shared
    return outcome


def merged(outcomes: Sequence[TrialOutcome]) -> TrialOutcome:
    """Join one label's units, in the order of their batches: the same as from a single worker."""
    first = outcomes[0]
    whole = TrialOutcome(first.label, first.strategy, first.parameters)
    for part in outcomes:
        whole.rankings.update(part.rankings)
        whole.hits.update(part.hits)
        whole.notes.update(part.notes)
        whole.counters.add(part.counters)
        whole.seconds += part.seconds
        whole.once_seconds += part.once_seconds
    return whole


def shared_seconds(outcomes: Mapping[Unit, TrialOutcome]) -> float:
    """The time for what all labels share, each batch counted once, though several workers may have computed it."""
    by_part: dict[int, float] = {}
    for unit, done in outcomes.items():
        by_part[unit.part] = max(by_part.get(unit.part, 0.0), done.shared_seconds)
    return sum(by_part.values())

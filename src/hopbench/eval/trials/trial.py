"""A trial: one strategy over all questions of a benchmark, with what it cost; a failure is a row with its reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopbench.eval.trials.ranking import rank_after_failure
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.collector import collector_paused
from hopbench.retrieval.support.timing import once_apart
from hopbench.retrieval.types import DETAILED, Counters, Hit, Question, Ranking, scored

BATCH = 1000  # questions


@dataclass
class TrialOutcome:
    """What a trial found and spent. `hits` (the first 20), `notes` and the sampled `latency_ms` are by question id.

    `seconds` are those of the questions; what was done once for the index on the way is in `once_seconds`.
    `pace` is the latency beside the yardstick, see `hopbench.eval.trials.latency.measure_paced`.
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

    @property
    def failures(self) -> int:
        """Questions without a ranking."""
        return sum(ranking.failure is not None for ranking in self.rankings.values())

    def add(self, ranking: Ranking, index: Index, budget: Budget) -> None:
        """Add one question's ranking of chunks, as passages and with the context that fits into the budget."""
        self.rankings[ranking.question_id] = to_passages(ranking, index, budget)
        self.hits[ranking.question_id] = list(ranking.hits[:DETAILED])
        self.notes[ranking.question_id] = ranking.notes


def batches(index: Index, questions: Sequence[Question], size: int | None = None, *, processes: int = 1) -> list[Batch]:
    """Questions in batches of `size`, 1,000 at most; strategies share what a batch computes.

    `processes` is how many processes may divide a batch among themselves (`Batch`).
    """
    size = min(size or BATCH, BATCH)
    parts = (questions[begin : begin + size] for begin in range(0, len(questions), size))
    return [Batch(index, part, processes=processes) for part in parts]


def prepare(parts: Sequence[Batch]) -> float:
    """Compute what all trials share (question vectors, BM25 and dense candidates); returns the seconds it took."""
    begun = time.perf_counter()
    for batch in parts:
        _ = batch.dense, batch.lexical
    return time.perf_counter() - begun


@dataclass
class Trial:
    """One strategy over all questions, in batches; `run` fills in `outcome`.

    It returns nothing, so that a scheduler that calls it has nothing to copy, hash or keep. `time_calls`, if given,
    measures single calls afterwards: it returns latency and pace (see `hopbench.eval.trials.latency.measure_paced`).
    """

    label: str
    strategy: Strategy
    parts: Sequence[Batch]
    budget: Budget
    time_calls: Callable[[TrialOutcome], tuple[dict[str, float], dict[str, float]]] | None = None
    outcome: TrialOutcome = field(init=False)

    def __post_init__(self) -> None:
        """Begin with an empty outcome."""
        self.outcome = TrialOutcome(self.label, self.strategy.name, self.strategy.spec())

    def run(self) -> None:
        """Rank all questions. Raises only what stops every question (a lost store, a bad parameter)."""
        for batch in self.parts:
            begun, spent = time.perf_counter(), Counters()
            # As `rank_batch` does, which would be one more frame in every traceback from a strategy.
            with once_apart() as once:
                try:
                    with collector_paused():
                        rankings = self.strategy.rank(batch, spent)
                except Exception as error:
                    rankings = rank_after_failure(error, self.strategy, batch, self.outcome.counters)
                else:
                    self.outcome.counters.add(spent)
            self.outcome.seconds += time.perf_counter() - begun - once.seconds
            self.outcome.once_seconds += once.seconds
            for ranking in rankings:
                self.outcome.add(ranking, batch.index, self.budget)
        if self.time_calls is not None:
            self.outcome.latency_ms, self.outcome.pace = self.time_calls(self.outcome)


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

"""A trial: one strategy over all questions of a benchmark, with what it cost; a failure is a row with its reason."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopbench.eval.types import PassageRanking
from hopbench.retrieval.budget import Budget
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.support.resources import exhausted
from hopbench.retrieval.types import Counters, Hit, Question, Ranking

BATCH_CELLS = 50_000_000  # questions × chunks of one dense score matrix: 400 MB
DETAILED_HITS = 20  # with components and path; the ranking itself is kept whole


@dataclass
class TrialOutcome:
    """What a trial found and spent. `hits` (the first 20), `notes` and the sampled `latency_ms` are by question id.

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
    latency_ms: dict[str, float] = field(default_factory=dict)
    pace: dict[str, float] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """Questions without a ranking."""
        return sum(ranking.failure is not None for ranking in self.rankings.values())


def batches(index: Index, questions: Sequence[Question], size: int | None = None) -> list[Batch]:
    """Questions in batches whose score matrices fit in memory; strategies share what a batch computes.

    `size` asks for smaller ones, to spread them over workers.
    """
    size = max(1, min(size or 1000, BATCH_CELLS // max(1, len(index.chunks))))
    return [Batch(index, questions[begin : begin + size]) for begin in range(0, len(questions), size)]


def prepare(parts: Sequence[Batch]) -> float:
    """Compute what all trials share (question vectors, BM25 and dense candidates); returns the seconds it took."""
    begun = time.perf_counter()
    for batch in parts:
        _ = batch.dense, batch.lexical
    return time.perf_counter() - begun


def run_trial(label: str, strategy: Strategy, parts: Sequence[Batch], budget: Budget) -> TrialOutcome:
    """Rank all questions with one strategy. Raises only what stops every question (a lost store, a bad parameter)."""
    outcome = TrialOutcome(label, strategy.name, strategy.spec())
    for batch in parts:
        begun = time.perf_counter()
        rankings = ranked(strategy, batch, outcome.counters)
        outcome.seconds += time.perf_counter() - begun
        for ranking in rankings:
            outcome.rankings[ranking.question_id] = to_passages(ranking, batch.index, budget)
            outcome.hits[ranking.question_id] = list(ranking.hits)[:DETAILED_HITS]
            outcome.notes[ranking.question_id] = ranking.notes
    return outcome


def ranked(strategy: Strategy, batch: Batch, counters: Counters) -> list[Ranking]:
    """Rank a batch and charge `counters`; where it fails, each question by itself, and a failure is one's ranking."""
    spent = Counters()
    try:
        rankings = strategy.rank(batch, spent)
    except HopBenchError:
        raise
    except Exception as error:  # a strategy may raise anything; which question did it is found below
        if len(batch.questions) == 1 and (lacking := exhausted(error)) is not None:
            raise lacking from error  # says nothing of the question
        if len(batch.questions) == 1:
            return [Ranking(batch.questions[0].id, failure=f"{type(error).__name__}: {error}")]
        singles = [Batch(batch.index, [question]) for question in batch.questions]
        return [ranking for single in singles for ranking in ranked(strategy, single, counters)]
    counters.add(spent)
    return rankings


def to_passages(ranking: Ranking, index: Index, budget: Budget) -> PassageRanking:
    """Map chunks to passages (a passage ranks where its first chunk does) and fit the context into the budget."""
    if ranking.failure is not None:
        return PassageRanking(ranking.question_id, failure=ranking.failure)
    best: dict[str, float] = {}
    for hit in ranking.hits:
        best.setdefault(index.passage_of[hit.chunk_id], hit.score)
    ranked = [index.chunks[index.row_of[hit.chunk_id]] for hit in ranking.hits[: budget.chunks]]
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

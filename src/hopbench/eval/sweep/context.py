"""What the trials of a sweep on one data set have in common: graph, questions in batches, and what to measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from hopbench.eval.answering.reading import Reading, read
from hopbench.eval.metrics import score, summarise
from hopbench.eval.sweep.results import with_readers
from hopbench.eval.trials.key import TrialKey
from hopbench.eval.trials.latency import measure_latency
from hopbench.eval.trials.ledger import TrialRecord
from hopbench.eval.trials.trial import TrialOutcome, batches, prepare, run_trial
from hopbench.eval.types import Benchmark
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.text.model_tokens import count_tokens

STORED_RANKS = 20
T = TypeVar("T")


@dataclass(frozen=True)
class TrialContext:
    """A data set prepared for trials, which share its batches of questions and everything computed from them.

    `benchmark` holds the questions of the sweep, `digest` is that of the whole data set, `fingerprint` the graph's.
    `latency` has each trial measure single calls too, `ragas` score RAGAS's metrics, `reading` answer and judge;
    `repeat` tells equal trials apart. `batch` asks for smaller batches of questions, to spread them over workers.
    `metrics` are measured in addition to the default ones. `processes` is how many may share a batch.
    """

    benchmark: Benchmark
    digest: str
    index: Index
    fingerprint: str
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    latency: bool = False
    ragas: bool = False
    repeat: int = 0
    reading: Reading = field(default_factory=Reading)
    batch: int | None = None
    metrics: Sequence[str] = ()
    processes: int = 1

    @cached_property
    def parts(self) -> list[Batch]:
        """The questions in batches with their candidates."""
        asked = [question.question for question in self.benchmark.questions]
        parts = batches(self.index, asked, self.batch, processes=self.processes)
        prepare(parts)
        return parts

    def key(self, strategy: Strategy) -> TrialKey:
        """The identity of the strategy's trial here."""
        return TrialKey.of(
            strategy,
            self.index,
            dataset=self.digest,
            questions=[question.id for question in self.benchmark.questions],
            fingerprint=self.fingerprint,
            budget=self.budget,
            seed=self.seed,
            latency=self.latency,
            ragas=self.ragas,
            repeat=self.repeat,
            batch=self.batch,
            metrics=list(self.metrics),
            **self.reading.settings(),
        )

    def trial_id(self, strategy: Strategy) -> str:
        """The id of the strategy's trial here."""
        return self.key(strategy).id

    def run(self, strategy: Strategy, ranked: TrialOutcome | None = None) -> TrialRecord:
        """Rank the questions (unless workers did: `ranked`), score them, and have the models answer and judge.

        `reach@h` is not computed. Raises BudgetReached when the models have cost what they may.
        """
        key, before = self.key(strategy), ranked.seconds + ranked.once_seconds if ranked else 0.0
        started = time.time() - before
        outcome = ranked or run_trial(strategy.name, strategy, self.parts, self.budget)
        tables = {strategy.name: score(self.benchmark, outcome.rankings, ragas=self.ragas, also=self.metrics)}
        answered = read(self.reading, self.benchmark, {strategy.name: outcome}, tables, _directly)
        rows = tables[strategy.name]
        summary = summarise(rows, self.benchmark, context_passages=self.budget.chunks)
        ids = [question.id for question in self.benchmark.questions]
        rows["ranked_ids"] = [list(outcome.rankings[question].ranked_ids[:STORED_RANKS]) for question in ids]
        costs, ended = self._costs(strategy, outcome), time.time()
        if self.reading.settings():
            costs = with_readers(costs, answered, strategy.name, summary)
        spent = outcome.failures, outcome.seconds, started, ended, costs
        return TrialRecord(key.id, key.settings, summary["metrics"], rows, *spent)

    def _costs(self, strategy: Strategy, outcome: TrialOutcome) -> dict[str, float]:
        spent = outcome.counters
        answered = [ranking for ranking in outcome.rankings.values() if ranking.failure is None]
        contexts = [count_tokens(ranking.context) for ranking in answered]
        costs: dict[str, float] = {
            "round_trips": spent.round_trips,
            "edges_touched": spent.edges_touched,
            "llm_calls": spent.llm_calls,
            "tokens": spent.tokens,
            "context_tokens": round(float(np.mean(contexts)), 2) if contexts else 0.0,
        }
        if self.latency:
            questions = [question.question for question in self.benchmark.questions]
            latencies = list(measure_latency(strategy, self.index, questions, self.seed).values())
            for percent in (50, 95):
                costs[f"latency_ms_p{percent}"] = round(float(np.percentile(latencies, percent)), 3)
        return costs


def _directly(_: str, work: Callable[[], T], /) -> T:
    """Run a step directly: to the scheduler a trial is a single step, answers and judgements included."""
    return work()


def sampled(benchmark: Benchmark, count: int | None, seed: int) -> Benchmark:
    """Sample `count` questions of the benchmark with `seed`, in their order; all when there are no more."""
    if count is None or count >= len(benchmark.questions):
        return benchmark
    chosen = np.random.default_rng(seed).choice(len(benchmark.questions), count, replace=False)
    return replace(benchmark, questions=tuple(benchmark.questions[i] for i in sorted(chosen)))


def first_drawn(benchmark: Benchmark, count: int | None, seed: int) -> Benchmark:
    """Sample `count` questions in their order; a larger sample with the same seed contains the smaller ones."""
    if count is None or count >= len(benchmark.questions):
        return benchmark
    chosen = np.random.default_rng(seed).permutation(len(benchmark.questions))[:count]
    return replace(benchmark, questions=tuple(benchmark.questions[i] for i in sorted(chosen)))

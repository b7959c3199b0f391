"""Where trials happen: a data set with its graph, its questions in batches, and what all trials there share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from hopbench.eval.answering.reading import Reading, read
from hopbench.eval.metrics import score, summarise
from hopbench.eval.sweep.readers import with_readers
from hopbench.eval.trials.latency import measure_latency
from hopbench.eval.trials.ledger import TrialRecord, trial_id
from hopbench.eval.trials.trial import TrialOutcome, batches, prepare, run_trial
from hopbench.eval.trials.version import code_version, plugin_settings
from hopbench.eval.types import Benchmark
from hopbench.retrieval.budget import Budget, counted
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.collector import collector_paused

KEPT_RANKS = 20
T = TypeVar("T")


@dataclass(frozen=True)
class Arena:
    """A data set ready for trials. All of them use the same batches, so what one computes for all is there for all.

    `benchmark` holds the questions of the sweep, `digest` is that of the whole data set, `fingerprint` the graph's.
    `latency` has each trial measure single calls too, `ragas` score RAGAS's metrics, `reading` answer and judge;
    `repeat` tells equal trials apart. `batch` asks for smaller batches of questions, to spread them over workers.
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

    @cached_property
    def parts(self) -> list[Batch]:
        """The questions in batches with their candidates."""
        parts = batches(self.index, [question.question for question in self.benchmark.questions], self.batch)
        prepare(parts)
        return parts

    def settings(self, strategy: Strategy) -> dict[str, Any]:
        """Everything that decides a trial's outcome: what its id is made of."""
        measured: dict[str, Any] = {
            "latency": self.latency,
            "ragas": self.ragas,
            "repeat": self.repeat,
            "batch": self.batch,
        }
        measured |= {"model": self.index.services.model, **self.reading.settings()}
        return {
            "strategy": strategy.name,
            "parameters": strategy.identity(),
            "dataset": self.digest,
            "questions": [question.id for question in self.benchmark.questions],
            "fingerprint": self.fingerprint,
            "store": self.index.store.engine,
            "embedder": self.index.embedder.name,
            "search": self.index.search,
            "budget": [self.budget.chunks, self.budget.tokens],
            "seed": self.seed,
            "code": code_version(),
            **plugin_settings(strategy),
            **{name: value for name, value in measured.items() if value},
        }

    def trial_id(self, strategy: Strategy) -> str:
        """The trial's content address."""
        return trial_id(**self.settings(strategy))

    def run(self, strategy: Strategy, ranked: TrialOutcome | None = None) -> TrialRecord:
        """Rank (unless workers have `ranked` already), score, and where somebody reads answer and judge all questions.

        No reach. Raises BudgetReached.
        """
        settings, started = self.settings(strategy), time.time() - (ranked.seconds if ranked else 0.0)
        with collector_paused():
            outcome = ranked or run_trial(strategy.name, strategy, self.parts, self.budget)
            tables = {strategy.name: score(self.benchmark, outcome.rankings, ragas=self.ragas)}
        said = read(self.reading, self.benchmark, {strategy.name: outcome}, tables, _at_once)
        rows = tables[strategy.name]
        summary = summarise(rows, self.benchmark, context_passages=self.budget.chunks)
        ids = [question.id for question in self.benchmark.questions]
        rows["ranked_ids"] = [list(outcome.rankings[question].ranked_ids[:KEPT_RANKS]) for question in ids]
        costs, ended = self._costs(strategy, outcome), time.time()
        if self.reading.settings():
            costs = with_readers(costs, said, strategy.name, summary)
        spent = outcome.failures, outcome.seconds, started, ended, costs
        return TrialRecord(trial_id(**settings), settings, summary["metrics"], rows, *spent)

    def _costs(self, strategy: Strategy, outcome: TrialOutcome) -> dict[str, float]:
        spent = outcome.counters
        answered = [ranking for ranking in outcome.rankings.values() if ranking.failure is None]
        contexts = [sum(map(counted, ranking.context_parts)) for ranking in answered]
        costs: dict[str, float] = {
            "round_trips": spent.round_trips,
            "edges_touched": spent.edges_touched,
            "llm_calls": spent.llm_calls,
            "tokens": spent.tokens,
            "context_tokens": round(float(np.mean(contexts)), 2) if contexts else 0.0,
        }
        if self.latency:
            asked = [question.question for question in self.benchmark.questions]
            taken = list(measure_latency(strategy, self.index, asked, self.seed).values())
            for percent in (50, 95):
                costs[f"latency_ms_p{percent}"] = round(float(np.percentile(taken, percent)), 3)
        return costs


def _at_once(_: str, work: Callable[[], T], /) -> T:
    """A trial is one step of the flow: what is read belongs to it."""
    return work()


def sampled(benchmark: Benchmark, count: int | None, seed: int) -> Benchmark:
    """The benchmark with `count` of its questions, drawn with `seed`, in their order; all when there are no more."""
    if count is None or count >= len(benchmark.questions):
        return benchmark
    chosen = np.random.default_rng(seed).choice(len(benchmark.questions), count, replace=False)
    return replace(benchmark, questions=tuple(benchmark.questions[i] for i in sorted(chosen)))


def first_drawn(benchmark: Benchmark, count: int | None, seed: int) -> Benchmark:
    """`count` of the questions in their order, each larger draw with the same seed containing the smaller ones."""
    if count is None or count >= len(benchmark.questions):
        return benchmark
    chosen = np.random.default_rng(seed).permutation(len(benchmark.questions))[:count]
    return replace(benchmark, questions=tuple(benchmark.questions[i] for i in sorted(chosen)))

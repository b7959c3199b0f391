"""What the trials of a sweep on one data set have in common: graph, questions in batches, and what to measure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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

STORED_RANKS = 20


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
        questions = [question.question for question in self.benchmark.questions]
        parts = batches(self.index, questions, self.batch, processes=self.processes)
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
        # To the scheduler a trial is a single step, answers and judgements included.
        answered = read(self.reading, self.benchmark, {strategy.name: outcome}, tables, lambda _, work: work())
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
        names = ("round_trips", "edges_touched", "llm_calls", "tokens")
        costs: dict[str, float] = {name: getattr(outcome.counters, name) for name in names}
        costs["context_tokens"] = outcome.context_tokens
        if self.latency:
            questions = [question.question for question in self.benchmark.questions]
            latencies = list(measure_latency(strategy, self.index, questions, self.seed).values())
            for percent in (50, 95):
                costs[f"latency_ms_p{percent}"] = round(float(np.percentile(latencies, percent)), 3)
        return costs


def sampled(benchmark: Benchmark, count: int | None, seed: int, *, nested: bool = False) -> Benchmark:
    """Sample `count` questions of the benchmark with `seed`, in their order; all when there are no more.

    A `nested` sample contains the smaller ones with the same seed.
    """
    size, rng = len(benchmark.questions), np.random.default_rng(seed)
    if count is None or count >= size:
        return benchmark
    chosen = rng.permutation(size)[:count] if nested else rng.choice(size, count, replace=False)
    return replace(benchmark, questions=tuple(benchmark.questions[i] for i in sorted(chosen)))

"""What a sweep does on one data set, and how it chooses: trials over shared candidates, their table, the best one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.ledger import TrialRecord, trial_id
from eval.metrics import score, summarise
from eval.sweep_file import Objective
from eval.sweep_plan import Candidate
from eval.trial import batches, prepare, run_trial
from eval.types import Benchmark
from eval.version import code_version
from retrieval.budget import Budget
from retrieval.errors import InputError
from retrieval.index import Batch, Index
from retrieval.question_entities import MODEL
from retrieval.strategies.base import Strategy

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Arena:
    """A data set ready for trials. All of them use the same batches, so what one computes for all is there for all.

    `benchmark` holds the questions of the sweep, `digest` is that of the whole data set, `fingerprint` the graph's.
    """

    benchmark: Benchmark
    digest: str
    index: Index
    fingerprint: str
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    @cached_property
    def parts(self) -> list[Batch]:
        """The questions in batches with their candidates."""
        parts = batches(self.index, [question.question for question in self.benchmark.questions])
        prepare(parts)
        return parts

    def settings(self, strategy: Strategy) -> dict[str, Any]:
        """Everything that decides a trial's outcome: what its id is made of."""
        return {
            "strategy": strategy.name,
            "parameters": strategy.spec(),
            "dataset": self.digest,
            "questions": [question.id for question in self.benchmark.questions],
            "fingerprint": self.fingerprint,
            "store": self.index.store.engine,
            "embedder": self.index.embedder.name,
            "budget": [self.budget.chunks, self.budget.tokens],
            "seed": self.seed,
            "code": code_version(),
            "model": self.index.shared.get(MODEL, ""),
        }

    def run(self, strategy: Strategy) -> TrialRecord:
        """Rank and score all questions; no latency, no reach."""
        started, settings = time.time(), self.settings(strategy)
        outcome = run_trial(strategy.name, strategy, self.parts, self.budget)
        rows = score(self.benchmark, outcome.rankings)
        metrics = summarise(rows, self.benchmark, context_passages=self.budget.chunks)["metrics"]
        name, ended = trial_id(**settings), time.time()
        return TrialRecord(name, settings, metrics, rows, outcome.failures, outcome.seconds, started, ended)


def sampled(benchmark: Benchmark, count: int | None, seed: int) -> Benchmark:
    """The benchmark with `count` of its questions, drawn with `seed`, in their order; all when there are no more."""
    if count is None or count >= len(benchmark.questions):
        return benchmark
    chosen = np.random.default_rng(seed).choice(len(benchmark.questions), count, replace=False)
    return replace(benchmark, questions=tuple(benchmark.questions[i] for i in sorted(chosen)))


@dataclass(frozen=True)
class Result:
    """A candidate with its trial on each data set, by the data set's name."""

    candidate: Candidate
    records: Mapping[str, TrialRecord]

    def mean(self, metric: str) -> float:
        """The metric's mean over the data sets, each counting the same.

        Raises InputError for a data set on which nothing can be measured.
        """
        for name, record in self.records.items():
            if metric not in record.metrics:
                raise InputError(f"objective: {metric} cannot be measured on {name}: it has no gold for it")
        return round(float(np.mean([record.metrics[metric] for record in self.records.values()])), 9)

    @property
    def failures(self) -> int:
        """Questions without a ranking, over all data sets."""
        return sum(record.failures for record in self.records.values())


def ranked(results: Sequence[Result], objective: Objective) -> list[Result]:
    """Best first: by the objective, then by its second metric, then by the smaller text of the parameters."""
    return sorted(
        results,
        key=lambda one: (-one.mean(objective.metric), -one.mean(objective.also), _text(one.candidate.strategy)),
    )


def trials_table(results: Sequence[Result]) -> pd.DataFrame:
    """trials.parquet (a contract, SPEC section 6): a row per trial, a column per metric.

    An ablation names the edge types it is `without` and the trial it is an `ablation_of`.
    """
    import pandas as pd

    ids: dict[tuple[Strategy | None, str], str] = {}
    for one in results:
        ids |= {(one.candidate.strategy, name): record.trial_id for name, record in one.records.items()}
    rows = [
        {
            "trial_id": record.trial_id,
            "strategy": result.candidate.strategy.name,
            "params": _text(result.candidate.strategy),
            "without": ",".join(result.candidate.without),
            "ablation_of": ids.get((result.candidate.of, dataset), ""),
            "dataset": dataset,
            **record.metrics,
            "failures": record.failures,
            "seconds": round(record.seconds, 4),
        }
        for result in results
        for dataset, record in result.records.items()
    ]
    return pd.DataFrame(rows)


def _text(strategy: Strategy) -> str:
    return json.dumps(strategy.spec(), sort_keys=True)

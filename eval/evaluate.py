"""Runs strategies over a benchmark, scores them, and compares each with the best hop-free baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eval.compare import Comparison, best_baseline, compare, mean_ci
from eval.graph_reach import expansion_factors, reach_columns
from eval.metrics import PRIMARY, score, summarise
from eval.reading import Read, Reading, read
from eval.trial import TrialOutcome, batches, measure_latency, prepare, run_trial
from eval.types import Benchmark
from eval.unfinished import Unfinished, trial_key
from eval.version import code_version
from retrieval.budget import Budget
from retrieval.errors import ParameterError
from retrieval.graph.build import Steps
from retrieval.index import Index
from retrieval.question_entities import MODEL
from retrieval.strategies.base import Strategy

if TYPE_CHECKING:
    import pandas as pd

INTERVAL_METRICS = (PRIMARY, "all_gold@5", "recall@5", "has_answer", "answer_em", "answer_f1")


@dataclass(frozen=True)
class Plan:
    """What to evaluate. `record` is the graph's build record, its fingerprint as read back from the store.

    `reading` says who answers and who judges; without it no language model is asked.
    """

    benchmark: Benchmark
    index: Index
    record: Mapping[str, Any]
    strategies: Mapping[str, Strategy]
    ragas: bool = False
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        """Refuse a threshold below the graph's floor, which would promise edges that were never built."""
        floor = self.record.get("settings", {}).get("similar_floor", 0.0)
        for label, strategy in self.strategies.items():
            threshold = getattr(strategy, "min_similarity", floor)
            if threshold < floor and getattr(strategy, "use_similar", True):
                raise ParameterError(
                    f"{label}: min_similarity = {threshold} is below the floor of the graph's SIMILAR_TO edges, "
                    f"{floor}: raise it, or build the graph with a lower similar_floor"
                )

    def key_of(self, label: str) -> str:
        """Names everything that decides a label's trial."""
        strategy = self.strategies[label]
        return trial_key(
            label=label,
            strategy=strategy.name,
            parameters=strategy.spec(),
            benchmark=self.benchmark.digest,
            questions=[question.id for question in self.benchmark.questions],
            fingerprint=self.record["fingerprint"],
            engine=self.index.store.engine,
            embedder=self.index.embedder.name,
            budget=[self.budget.chunks, self.budget.tokens],
            seed=self.seed,
            code=code_version(),
            model=self.index.shared.get(MODEL, ""),
        )


@dataclass
class Evaluation:
    """Everything a run found: per label the trial, its rows and summary, and the comparison of all labels.

    With a reader there is one more label, `closed_book`, which ranks nothing.
    """

    plan: Plan
    trials: Mapping[str, TrialOutcome]
    rows: Mapping[str, pd.DataFrame]
    summaries: Mapping[str, Mapping[str, Any]]
    comparison: Comparison | None
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    shared_seconds: float
    read: Read = field(default_factory=Read)


def evaluate(plan: Plan, kept: Unfinished, steps: Steps) -> Evaluation:
    """Run what is not in `kept` yet, a step a trial, and score it all."""
    questions = [question.question for question in plan.benchmark.questions]
    parts = batches(plan.index, questions)
    shared = steps("candidates", lambda: prepare(parts))
    trials = {}
    for label, strategy in plan.strategies.items():
        key = plan.key_of(label)
        outcome = kept.get(key)
        if outcome is None:
            outcome = steps(f"trial {label}", lambda: _trial(plan, label, strategy, parts))  # noqa: B023 - called at once
            kept.put(key, outcome)
        trials[label] = outcome
    rows = steps("score", lambda: _rows(plan, trials))
    said = read(plan.reading, plan.benchmark, trials, rows, steps)
    return steps("compare", lambda: _compared_all(plan, trials, rows, shared, said))


def _trial(plan: Plan, label: str, strategy: Strategy, parts: list[Any]) -> TrialOutcome:
    outcome = run_trial(label, strategy, parts, plan.budget)
    questions = [question.question for question in plan.benchmark.questions]
    outcome.latency_ms = measure_latency(strategy, plan.index, questions, plan.seed)
    return outcome


def _rows(plan: Plan, trials: Mapping[str, TrialOutcome]) -> dict[str, pd.DataFrame]:
    factors = expansion_factors(plan.index)
    rows = {}
    for label, trial in trials.items():
        scored = score(plan.benchmark, trial.rankings, ragas=plan.ragas)
        rows[label] = scored.join(reach_columns(trial, plan.benchmark, factors))
    return rows


def _compared_all(
    plan: Plan, trials: Mapping[str, TrialOutcome], rows: Mapping[str, pd.DataFrame], shared: float, said: Read
) -> Evaluation:
    chunks = plan.budget.chunks
    summaries = {label: summarise(table, plan.benchmark, context_passages=chunks) for label, table in rows.items()}
    comparison = _compared(plan, rows, summaries)
    intervals = {label: _intervals(table, plan.seed) for label, table in rows.items()}
    return Evaluation(plan, trials, rows, summaries, comparison, intervals, shared, said)


def _compared(
    plan: Plan, rows: Mapping[str, pd.DataFrame], summaries: Mapping[str, Mapping[str, Any]]
) -> Comparison | None:
    baseline = best_baseline(summaries)
    ranked = {label: table for label, table in rows.items() if PRIMARY in table}
    if baseline is None or len(ranked) < 2:
        return None
    types = {question.id: question.type for question in plan.benchmark.questions}
    return compare(ranked, baseline, seed=plan.seed, types=types)


def _intervals(rows: pd.DataFrame, seed: int) -> dict[str, tuple[float, float]]:
    found = {}
    for metric in (name for name in INTERVAL_METRICS if name in rows):
        values = rows[metric].dropna().to_numpy(dtype=float)
        interval = mean_ci(values, seed) if len(values) > 1 else None
        if interval is not None:
            found[metric] = (interval.low, interval.high)
    return found

"""Runs strategies over a benchmark, scores them, and compares each with the best hop-free baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hopbench.eval.answering.answers import CLOSED_BOOK
from hopbench.eval.answering.reading import Read, Reading, read
from hopbench.eval.compare import BREAKDOWN_RESAMPLES, Comparison, best_baseline, compare
from hopbench.eval.graph_quality import expansion_factors, reach_columns
from hopbench.eval.metrics import Summary, primary_metric, ragas_metrics, score, shown_in, summarise, worst_of
from hopbench.eval.runs.targets import Target
from hopbench.eval.statistics import mean_ci
from hopbench.eval.trials.key import TrialKey
from hopbench.eval.trials.latency import measure_latency, measure_paced
from hopbench.eval.trials.trial import Trial, TrialOutcome, batches
from hopbench.eval.types import Benchmark
from hopbench.retrieval.context import Budget
from hopbench.retrieval.fitted import FittedOn, question_hash
from hopbench.retrieval.graph.construction.builder import BuildRecord, Steps
from hopbench.retrieval.graph.schema import SIMILAR_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.registry import InSample, LabelKind, kind_of
from hopbench.retrieval.support.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Plan:
    """The plan of an evaluation. `record` is the graph's build record, its fingerprint as read back from the store.

    `reading` names the models that answer and judge; without it none is called. `tuned_on` are the sets on which
    the changes in labels were tuned, if they were; `targets` what the figures must keep; `metrics` are measured beside
    those that run by default. So many `processes` may divide a batch (`Batch`).
    """

    benchmark: Benchmark
    index: Index
    record: BuildRecord
    strategies: Mapping[str, Strategy]
    ragas: bool = False
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    batch: int | None = None
    reading: Reading = field(default_factory=Reading)
    tuned_on: Sequence[FittedOn] = ()
    targets: Sequence[Target] = ()
    metrics: Sequence[str] = ()
    processes: int = 1

    def __post_init__(self) -> None:
        """Refuse a threshold below the graph's floor, which would promise edges that were never built."""
        floor = self.record.get("settings", {}).get("similar_floor", 0.0)
        for label, strategy in self.strategies.items():
            threshold = strategy.lowest_weights().get(SIMILAR_TO, floor)
            if threshold < floor:
                raise ParameterError(
                    f"{label}: min_similarity = {threshold} is below the floor of the graph's SIMILAR_TO edges, "
                    f"{floor}: raise it, or build the graph with a lower similar_floor"
                )

    @cached_property
    def parts(self) -> list[Batch]:
        """Questions in batches, shared by all labels."""
        questions = [question.question for question in self.benchmark.questions]
        return batches(self.index, questions, self.batch, processes=self.processes)

    @cached_property
    def primary(self) -> str | None:
        """The deciding metric of this benchmark; None where nothing can be scored."""
        return primary_metric(self.benchmark)

    def kind(self, label: str) -> str:
        """The label's kind: documented, tuned, learned, set by hand, or a plug-in's own word."""
        return self._kinds[label].kind if label in self._kinds else CLOSED_BOOK.replace("_", " ")

    def in_sample(self, label: str) -> InSample | None:
        """The sets on which the label was tuned or learned, if the benchmark shares questions with any.

        A figure on questions that chose the label's own numbers proves nothing.
        """
        if label not in self._kinds:
            return None
        return self._kinds[label].in_sample(self.benchmark.digest, self._hashes)

    @cached_property
    def _kinds(self) -> Mapping[str, LabelKind]:
        return {label: kind_of(label, strategy, self.tuned_on) for label, strategy in self.strategies.items()}

    @cached_property
    def _hashes(self) -> frozenset[str]:
        return frozenset(question_hash(question.text) for question in self.benchmark.questions)

    def trial(self, label: str) -> Trial:
        """Make the label's trial: it ranks all questions and then times single calls."""
        return Trial(label, self.strategies[label], self.parts, self.budget, self.time_calls)

    def time_calls(self, outcome: TrialOutcome) -> TrialOutcome:
        """Add latency and pace of single calls to a trial's outcome, on questions that did not fail."""
        failed = {question for question, ranking in outcome.rankings.items() if ranking.failure is not None}
        outcome.latency_ms, outcome.pace = measured_calls(self, outcome.label, failed)
        return outcome

    def key_of(self, label: str) -> str:
        """Digest everything that decides a label's trial."""
        return TrialKey.of(
            self.strategies[label],
            self.index,
            dataset=self.benchmark.digest,
            questions=[question.id for question in self.benchmark.questions],
            fingerprint=self.record["fingerprint"],
            budget=self.budget,
            seed=self.seed,
            label=label,
            batch=self.batch,
            metrics=list(self.metrics),
        ).digest


@dataclass
class Evaluation:
    """The results of a run: each label's trial, rows and summary, and the comparison of all labels.

    With a reader there is one more label, `closed_book`, which ranks nothing. `ragas` compares the labels on RAGAS's
    metrics, each metric a family of its own.
    """

    plan: Plan
    trials: Mapping[str, TrialOutcome]
    rows: Mapping[str, pd.DataFrame]
    summaries: Mapping[str, Summary]
    comparison: Comparison | None
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    shared_seconds: float
    read: Read = field(default_factory=Read)
    ragas: Sequence[Comparison] = ()


def evaluate(plan: Plan, trials: Mapping[str, TrialOutcome], shared_seconds: float, steps: Steps) -> Evaluation:
    """Score all labels' trials, have the models read and judge them, and compare; `steps` runs each of the three.

    `shared_seconds` is what the trials shared: question vectors, BM25 and dense candidates.
    """
    ranked = dict(trials)
    rows = steps("score", lambda: _rows(plan, ranked))
    answered = read(plan.reading, plan.benchmark, ranked, rows, steps)

    def compared() -> Evaluation:
        chunks = plan.budget.chunks
        summaries = {label: summarise(table, plan.benchmark, context_passages=chunks) for label, table in rows.items()}
        comparison = best_compared(plan, rows, summaries)
        ragas = _ragas_compared(plan, rows, comparison)
        intervals = {}
        for label, table in rows.items():
            found = {metric: interval_of(table, metric, plan.seed) for metric in shown_in("intervals")}
            intervals[label] = {metric: interval for metric, interval in found.items() if interval is not None}
        return Evaluation(plan, ranked, rows, summaries, comparison, intervals, shared_seconds, answered, ragas)

    return steps("compare", compared)


def measured_calls(plan: Plan, label: str, failed: Collection[str] = ()) -> tuple[dict[str, float], dict[str, float]]:
    """Measure latency and pace of a label (see `hopbench.eval.trials.latency.measure_paced`).

    Rankings that are read from a file have no latency; those of another process have no pace, and a latency only where
    the question has not `failed`.
    """
    strategy = plan.strategies[label]
    questions = [question.question for question in plan.benchmark.questions]
    if strategy.timing == "unknown":
        return {}, {}
    if strategy.timing == "wall":
        answered = [question for question in questions if question.id not in failed]
        return measure_latency(strategy, plan.index, answered, plan.seed, answered_only=True), {}
    return measure_paced(strategy, plan.index, questions, plan.seed)


def _rows(plan: Plan, trials: Mapping[str, TrialOutcome]) -> dict[str, pd.DataFrame]:
    plan.index.forget()  # before matrices of all edges are made
    reached = reach_columns(trials, plan.benchmark, expansion_factors(plan.index))
    rows = {}
    for label, trial in trials.items():
        scored = score(plan.benchmark, trial.rankings, ragas=plan.ragas, also=plan.metrics)
        rows[label] = scored.join(reached[label])
    return rows


def best_compared(plan: Plan, rows: Mapping[str, pd.DataFrame], summaries: Mapping[str, Summary]) -> Comparison | None:
    """Compare all labels with the best hop-free baseline on the primary metric; None where there is nothing to."""
    metric = plan.primary
    if metric is None:
        return None
    baseline = best_baseline({label: summary["metrics"] for label, summary in summaries.items()}, metric=metric)
    ranked = {label: table for label, table in rows.items() if metric in table}
    if baseline is None or len(ranked) < 2:
        return None
    types = {question.id: question.type for question in plan.benchmark.questions}
    return compare(ranked, baseline, metric, seed=plan.seed, types=types)


def _ragas_compared(plan: Plan, rows: Mapping[str, pd.DataFrame], primary: Comparison | None) -> list[Comparison]:
    """Compare RAGAS's metrics, with and without a judge, against the baseline of the primary comparison."""
    baseline = primary.baseline if primary is not None else None
    if baseline is None:
        return []
    families = []
    for metric in ragas_metrics(rows[baseline]):
        measured = {label: table for label, table in rows.items() if metric in table}
        if len(measured) > 1:
            families.append(compare(measured, baseline, metric, seed=plan.seed, resamples=BREAKDOWN_RESAMPLES))
    return families


def interval_of(rows: pd.DataFrame, metric: str, seed: int = 0) -> tuple[float, float] | None:
    """Compute the 95% interval of a label's mean; a failed question counts as the worst, as in the mean itself.

    None for under two questions, or where the metric was not measured. `rows` has a row per question and `failure`.
    """
    if metric not in rows:
        return None
    values = rows[metric].where(rows["failure"].isna(), worst_of(metric)).dropna().to_numpy(dtype=float)
    interval = mean_ci(values, seed)
    return None if interval is None else (interval.low, interval.high)

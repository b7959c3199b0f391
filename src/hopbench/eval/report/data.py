"""The data of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hopbench.eval.metrics import primary_of, rank_key
from hopbench.eval.runs.files import (
    QUESTION_COLUMNS,
    RESULTS_SCHEMA,
    ComparisonEntry,
    HitEntry,
    RunResults,
    StrategyEntry,
)
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.strategies.registry import InSample
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ReportData:
    """Everything that one report shows; `results` and `questions` are the contract files of a run.

    `comparisons` are each label's against the baseline on the headline metric, `ragas_comparisons` those on RAGAS's
    metrics. `intervals` is label → metric → (low, high): confidence intervals of the means. `paths` is (question id,
    label) → first hits. `names` gives nodes of paths (entities, parts of passages) a readable name; a passage is shown
    by its title. `stated` holds, for pairs of entities on paths (sorted ids), the relations stated between them, in
    words. `traces` is traces.parquet, `run` the facts of the command to print, among them `warnings`.

    What follows from these is set when the data is made: `strategies` (label → its entry in results.json), the
    headline metric `primary` (the compared one, else the benchmark's; empty if nothing can be scored), all measured
    `metrics`, the compared `baseline` (empty where nothing was compared), the `labels`, best headline score first,
    `in_sample` (label → the sets on which it was tuned or learned and which this benchmark shares questions with),
    the `contenders` (the labels that may be called best: scored, and not in sample), and `compared` (label → its
    comparison with the baseline on the headline metric).
    """

    results: RunResults
    questions: pd.DataFrame
    benchmark: Benchmark
    comparisons: Sequence[ComparisonEntry] = ()
    intervals: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    paths: Mapping[tuple[str, str], Sequence[HitEntry]] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    stated: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    traces: pd.DataFrame | None = None
    ragas_comparisons: Sequence[ComparisonEntry] = ()
    strategies: Mapping[str, StrategyEntry] = field(init=False)
    primary: str = field(init=False)
    baseline: str = field(init=False)
    metrics: list[str] = field(init=False)
    labels: list[str] = field(init=False)
    in_sample: dict[str, InSample] = field(init=False)
    contenders: list[str] = field(init=False)
    compared: dict[str, ComparisonEntry] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse, before anything is written, what cannot be reported."""
        if self.results.get("schema") != RESULTS_SCHEMA:
            raise InputError(
                f"results: schema is {self.results.get('schema')!r}, this report reads {RESULTS_SCHEMA!r}: "
                "run the benchmark again with this version"
            )
        entries = self.results.get("strategies") or {}
        if not entries:
            raise InputError("results: no strategies, nothing to report: run at least one")
        missing = sorted(set(QUESTION_COLUMNS[:3]) - set(self.questions.columns))
        if missing:
            raise InputError(f"questions: no column {', '.join(missing)}: pass the run's questions.parquet")
        unknown = sorted(set(self.questions["question_id"]) - {q.id for q in self.benchmark.questions})
        if unknown:
            raise InputError(
                f"questions: {len(unknown)} question ids are not in benchmark {self.benchmark.name!r} "
                f"(first: {unknown[0]!r}): name the benchmark that the run used"
            )
        compared = self.comparisons[0] if self.comparisons else None
        primary = str(compared["metric"]) if compared else primary_of(self.results) or ""
        scores = {label: entry["metrics"].get(primary) for label, entry in entries.items()}
        labels = sorted(scores, key=lambda label: (rank_key(primary, scores[label]), label)) if primary else [*entries]
        in_sample = {label: sets for label in labels if (sets := entries[label].get("in_sample"))}
        vars(self).update(
            strategies=entries,
            primary=primary,
            baseline=str(compared["baseline"]) if compared else "",
            metrics=sorted({name for entry in entries.values() for name in entry["metrics"]}),
            labels=labels,
            in_sample=in_sample,
            compared={pair["label"]: pair for pair in self.comparisons if pair["metric"] == primary},
            contenders=[label for label in labels if scores[label] is not None and label not in in_sample],
        )

    @cached_property
    def asked(self) -> list[BenchmarkQuestion]:
        """The benchmark's questions that have a row."""
        known = {question_id for question_id, _ in self.rows}
        return [question for question in self.benchmark.questions if question.id in known]

    @property
    def unfit(self) -> str:
        """Why the questions measure nothing; empty where they do."""
        return str(self.results["benchmark"].get("unfit", ""))

    @cached_property
    def rows(self) -> Mapping[tuple[str, str], Mapping[Any, Any]]:
        """(question id, label) → that question's row; lists are plain, `failure` is a text or None."""
        rows = self.questions.to_dict("records")
        for row in rows:
            failure = row.get("failure")  # pandas writes NaN for an absent text or list, Parquet gives arrays for lists
            row["failure"] = failure if isinstance(failure, str) and failure else None
            for name in ("ranked_ids", "scores"):
                value = row.get(name)
                row[name] = [] if value is None or isinstance(value, float) else np.asarray(value).tolist()
        return {(row["question_id"], row["strategy"]): row for row in rows}

    @cached_property
    def trace_rows(self) -> Mapping[tuple[str, str], Mapping[Any, Any]]:
        """(question id, label) → that question's row of the traces; empty where the run has none."""
        rows = [] if self.traces is None else self.traces.to_dict("records")
        return {(row["question_id"], row["strategy"]): row for row in rows}


def shown_interval(pair: ComparisonEntry) -> tuple[float, float] | None:
    """The interval shown with a comparison's verdict: the family's, which agrees with it; None where there is none."""
    low, high = pair.get("family_low"), pair.get("family_high")
    return None if low is None or high is None else (float(low), float(high))

"""The data of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopbench.eval.metrics import primary_of, rank_key
from hopbench.eval.runs.files import (
    QUESTION_COLUMNS,
    RESULTS_SCHEMA,
    ComparisonEntry,
    HitEntry,
    RunResults,
    StrategyEntry,
)
from hopbench.eval.types import Benchmark
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.registry import InSample
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ReportData:
    """Everything that one report shows; `results` and `questions` are the contract files of a run.

    `comparisons` are each label's against the baseline on the headline metric, `beside` those on RAGAS's metrics.
    `intervals` is label → metric → (low, high): confidence intervals of the means. `paths` is (question id, label) →
    first hits. `names` gives nodes of paths (entities, parts of passages) a readable name; a passage is shown by its
    title. `stated` holds, for pairs of entities on paths (sorted ids), the relations stated between them, in words.
    `traces` is traces.parquet, `run` the facts of the command to print, among them `warnings`.
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
    beside: Sequence[ComparisonEntry] = ()

    def __post_init__(self) -> None:
        """Refuse, before anything is written, what cannot be reported."""
        if self.results.get("schema") != RESULTS_SCHEMA:
            raise InputError(
                f"results: schema is {self.results.get('schema')!r}, this report reads {RESULTS_SCHEMA!r}: "
                "run the benchmark again with this version"
            )
        if not self.labels:
            raise InputError("results: no strategies, nothing to report: run at least one")
        missing = sorted(set(QUESTION_COLUMNS[:3]) - set(self.questions.columns))
        if missing:
            raise InputError(f"questions: no column {', '.join(missing)}: pass the run's questions.parquet")
        foreign = sorted(set(self.questions["question_id"]) - {q.id for q in self.benchmark.questions})
        if foreign:
            raise InputError(
                f"questions: {len(foreign)} question ids are not in benchmark {self.benchmark.name!r} "
                f"(first: {foreign[0]!r}): name the benchmark that the run used"
            )

    @cached_property
    def labels(self) -> list[str]:
        """Labels, best headline score first, then by name; in the order of the run where there is no such metric."""
        strategies, metric = self.strategies, self.primary
        if not metric:
            return list(strategies)
        return sorted(strategies, key=lambda name: (rank_key(metric, strategies[name]["metrics"].get(metric)), name))

    @cached_property
    def contenders(self) -> list[str]:
        """The labels that may be called best: scored, and not tuned or learned on this benchmark's questions."""
        entries = self.strategies
        scored = [name for name in self.labels if entries[name]["metrics"].get(self.primary) is not None]
        return [name for name in scored if not entries[name].get("in_sample")]

    @cached_property
    def in_sample(self) -> dict[str, InSample]:
        """Label → the sets on which it was tuned or learned and which this benchmark shares questions with."""
        return {name: sets for name in self.labels if (sets := self.strategies[name].get("in_sample"))}

    @property
    def strategies(self) -> Mapping[str, StrategyEntry]:
        """Label → its entry in results.json."""
        return self.results.get("strategies") or {}

    @cached_property
    def metrics(self) -> list[str]:
        """Every metric that at least one label has, sorted."""
        return sorted({name for entry in self.strategies.values() for name in entry["metrics"]})

    @cached_property
    def primary(self) -> str:
        """The headline metric: the compared one, else its benchmark's primary one; empty if nothing can be scored."""
        if self.comparisons:
            return str(self.comparisons[0]["metric"])
        return primary_of(self.results) or ""

    @property
    def unfit(self) -> str:
        """Why the questions measure nothing; empty where they do."""
        return str(self.results["benchmark"].get("unfit", ""))

    @cached_property
    def baseline(self) -> str:
        """The label that the others were compared with, empty where nothing was compared."""
        return str(self.comparisons[0]["baseline"]) if self.comparisons else ""

    @cached_property
    def rows(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """(question id, label) → that question's row; lists are plain, `failure` is a text or None."""
        return {(row["question_id"], row["strategy"]): row for row in _records(self.questions)}

    @cached_property
    def trace_rows(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """(question id, label) → that question's row of the traces; empty where the run has none."""
        if self.traces is None:
            return {}
        columns = {name: self.traces[name].tolist() for name in map(str, self.traces.columns)}
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        return {(row["question_id"], row["strategy"]): row for row in rows}

    def comparison(self, label: str) -> ComparisonEntry | None:
        """The comparison of a label with the baseline on the headline metric."""
        wanted = (label, self.primary)
        return next((c for c in self.comparisons if (c["label"], c["metric"]) == wanted), None)

    def interval(self, label: str, metric: str) -> tuple[float, float] | None:
        """The confidence interval of a label's mean."""
        pair = self.intervals.get(label, {}).get(metric)
        return None if pair is None else (float(pair[0]), float(pair[1]))


def shown_interval(pair: ComparisonEntry) -> tuple[float, float] | None:
    """The interval shown with a comparison's verdict: the family's, which agrees with it; None where there is none."""
    low, high = pair.get("family_low"), pair.get("family_high")
    return None if low is None or high is None else (float(low), float(high))


def is_hop_free(label: str) -> bool:
    """Whether a label names a ranking that follows no edge: `bm25`, `hybrid:tuned`, `vector[…]`."""
    return Label.of_any(label).is_hop_free


def _records(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows as dicts of plain Python: pandas writes NaN for an absent text or list, Parquet gives arrays for lists."""
    columns = {name: table[name].tolist() for name in map(str, table.columns)}
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        failure = row.get("failure")
        lists = {name: _plain_list(row.get(name)) for name in ("ranked_ids", "scores")}
        yield row | lists | {"failure": failure if isinstance(failure, str) and failure else None}


def _plain_list(value: Any) -> list[Any]:
    if value is None or isinstance(value, float):
        return []
    return list(value.tolist() if hasattr(value, "tolist") else value)

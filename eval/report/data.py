"""What a report is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eval.types import Benchmark
from retrieval.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

RESULTS_SCHEMA = "hopbench.results/1"
PREFERRED = ("all_gold@10", "recall@5", "has_answer")  # the headline where no comparison names a primary metric
HOP_FREE = ("vector", "bm25", "hybrid")


@dataclass(frozen=True)
class ReportData:
    """Everything that one report shows; `results` and `questions` are the contract files of a run.

    `comparisons` holds a dict per label: label, baseline, metric, effect, ci_low, ci_high, p, p_adjusted, mde,
    verdict, n, wins, losses, ties (effect, interval and mde in the metric's own unit, 0..1; None where n is too small).
    `intervals` is label → metric → (low, high): confidence intervals of the means.
    `paths` is (question id, label) → hits as dicts: passage_id, rank, score, origin, components, path; a path is a
    list of edges: edge, source, target, weight, score. `names` gives nodes of paths (entities, parts of passages) a
    readable name; a passage id is shown by its title. `traces` is the run's traces.parquet. `run` holds the facts to
    print, among them `warnings`.
    """

    results: Mapping[str, Any]
    questions: pd.DataFrame
    benchmark: Benchmark
    comparisons: Sequence[Mapping[str, Any]] = ()
    intervals: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    paths: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    traces: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        """Refuse, before anything is written, what cannot be reported."""
        if self.results.get("schema") != RESULTS_SCHEMA:
            raise InputError(
                f"results: schema is {self.results.get('schema')!r}, this report reads {RESULTS_SCHEMA!r}: "
                "run the benchmark again with this version"
            )
        if not self.labels:
            raise InputError("results: no strategies, nothing to report: run at least one")
        missing = sorted({"question_id", "strategy", "ranked_ids"} - set(self.questions.columns))
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
        """Labels, best headline score first, then by name."""
        strategies = self.strategies
        return sorted(strategies, key=lambda name: (-(strategies[name]["metrics"].get(self.primary) or 0.0), name))

    @property
    def strategies(self) -> Mapping[str, Any]:
        """Label → its entry in results.json."""
        found: Mapping[str, Any] = self.results.get("strategies") or {}
        return found

    @cached_property
    def metrics(self) -> list[str]:
        """Every metric that at least one label has, sorted."""
        return sorted({name for entry in self.strategies.values() for name in entry["metrics"]})

    @cached_property
    def primary(self) -> str:
        """The headline metric: the compared one, else the first preferred one present; empty without any metric."""
        if self.comparisons:
            return str(self.comparisons[0]["metric"])
        return next((name for name in (*PREFERRED, *self.metrics) if name in self.metrics), "")

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

    def comparison(self, label: str) -> Mapping[str, Any] | None:
        """The comparison of a label with the baseline on the headline metric."""
        wanted = (label, self.primary)
        return next((c for c in self.comparisons if (c["label"], c["metric"]) == wanted), None)

    def interval(self, label: str, metric: str) -> tuple[float, float] | None:
        """The confidence interval of a label's mean."""
        pair = self.intervals.get(label, {}).get(metric)
        return None if pair is None else (float(pair[0]), float(pair[1]))


def is_hop_free(label: str) -> bool:
    """Whether a label names a ranking that follows no edge: `bm25`, `hybrid:tuned`, `vector[…]`."""
    return label.split("[", maxsplit=1)[0].split(":", maxsplit=1)[0] in HOP_FREE


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

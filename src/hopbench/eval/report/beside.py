"""The report's tables beside the leaderboard: RAGAS's metrics compared, and the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopbench.eval.metrics import best_value, ragas_metrics
from hopbench.eval.report.data import ReportData
from hopbench.eval.runs.schema import ComparisonEntry


@dataclass(frozen=True)
class RagasRow:
    """A label's means, and its comparison with the baseline, by metric; None where there is none."""

    label: str
    means: Mapping[str, float | None]
    comparisons: Mapping[str, ComparisonEntry | None]


@dataclass(frozen=True)
class TargetRow:
    """A label's value for a target; `value` is None where it was not measured."""

    condition: str
    label: str
    value: float | None
    passed: bool


def ragas_rows(data: ReportData) -> tuple[dict[str, float | None], list[RagasRow]]:
    """RAGAS's metrics that were computed with the best mean of each, and a row per label in the leaderboard's order."""
    names = ragas_metrics(data.metrics)
    pairs = {(pair["label"], pair["metric"]): pair for pair in data.beside}
    rows = [
        RagasRow(
            label,
            {name: data.strategies[label]["metrics"].get(name) for name in names},
            {name: pairs.get((label, name)) for name in names},
        )
        for label in data.labels
    ]
    return {name: best_value(name, (row.means[name] for row in rows)) for name in names}, rows


def target_rows(data: ReportData) -> Sequence[TargetRow]:
    """The targets' outcomes, those that failed first."""
    rows = [
        TargetRow(condition, label, outcome["value"], outcome["passed"])
        for condition, labels in (data.results.get("targets") or {}).items()
        for label, outcome in labels.items()
    ]
    return sorted(rows, key=lambda row: row.passed)

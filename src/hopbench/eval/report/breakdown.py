"""Means by question type and by number of gold passages, each beside the most that is possible there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Any

from hopbench.eval.metrics import get_metric, ragas_metrics, worst_of
from hopbench.eval.metrics.scoring import gold_facts
from hopbench.eval.report.data import ReportData
from hopbench.eval.types import BenchmarkQuestion

METRICS = (
    "all_gold@2",
    "all_gold@5",
    "all_gold@10",
    "all_gold@20",
    "recall@5",
    "recall@10",
    "has_answer@10",
    "has_answer",
)


@dataclass(frozen=True)
class Group:
    """Questions that belong together; `ceiling` is None for metrics without one."""

    name: str
    questions: int
    ceiling: float | None
    means: dict[str, float | None]


@dataclass(frozen=True)
class Breakdown:
    """One metric over both ways of grouping; the first group of `by_type` is all questions."""

    metric: str
    by_type: list[Group]
    by_gold: list[Group]


def breakdowns(data: ReportData) -> list[Breakdown]:
    """One per metric that the questions' table has a column for, the headline first."""
    known = [str(name) for name in data.questions.columns if data.questions[name].notna().any()]
    wanted = [name for name in dict.fromkeys((data.primary, *METRICS)) if name in known]
    wanted += ragas_metrics(known)
    wanted += sorted(name for name in known if re.fullmatch(r"reach@\d+", name))
    return [_breakdown(data, metric) for metric in wanted]


def _breakdown(data: ReportData, metric: str) -> Breakdown:
    asked = {question_id for question_id, _ in data.rows}
    questions = [q for q in data.benchmark.questions if q.id in asked]
    everything = _group(data, metric, "all questions", questions)
    by_type = _split(data, metric, questions, lambda q: q.type or "no type")
    by_gold = _split(data, metric, questions, lambda q: f"{q.gold.size:>3} gold")
    return Breakdown(metric, [everything, *by_type], by_gold)


def _split(
    data: ReportData, metric: str, questions: list[BenchmarkQuestion], key: Callable[[BenchmarkQuestion], str]
) -> list[Group]:
    groups: dict[str, list[BenchmarkQuestion]] = {}
    for question in questions:
        groups.setdefault(key(question), []).append(question)
    return [_group(data, metric, name.strip(), groups[name]) for name in sorted(groups)]


def _group(data: ReportData, metric: str, name: str, questions: list[BenchmarkQuestion]) -> Group:
    means = {
        label: filled((data.rows.get((q.id, label), {}).get(metric) for q in questions), worst_of(metric))
        for label in data.labels
    }
    limits = [limit for q in questions if (limit := ceiling(metric, q, data.benchmark.titles)) is not None]
    return Group(name, len(questions), fmean(limits) if limits else None, means)


def filled(values: Iterable[Any], worst: float = 0.0) -> float | None:
    """The mean with missing values as the worst one, or None when every value is missing."""
    numbers = [float(v) if v is not None and isfinite(v) else None for v in values]
    if all(v is None for v in numbers):
        return None
    return fmean(worst if v is None else v for v in numbers)


def ceiling(metric: str, question: BenchmarkQuestion, titles: Mapping[str, str]) -> float | None:
    """The best value that any ranking can reach on a question: all_gold@2 is 0 for four gold, recall@2 is 2/4."""
    if metric.partition("@")[0] not in ("all_gold", "recall") or not question.gold:
        return None
    return max(map(get_metric(metric).ceiling, gold_facts(question, titles)))

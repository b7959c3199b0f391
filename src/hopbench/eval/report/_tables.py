"""The report's tables: leaderboard, RAGAS's metrics, targets, breakdowns with ceilings, language models, failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Any

from hopbench.eval.answering.answers import JudgeEntry, ReaderEntry
from hopbench.eval.metrics import best_value, get_metric, ragas_metrics, shown_in, shown_metrics, worst_of
from hopbench.eval.metrics.scoring import gold_facts
from hopbench.eval.report.data import ReportData, is_hop_free, shown_interval
from hopbench.eval.runs.files import ComparisonEntry, StrategyEntry, figure
from hopbench.eval.types import BenchmarkQuestion, too_many_failed
from hopbench.retrieval.llm.endpoint import asked_of
from hopbench.retrieval.strategies.registry import InSample

COST_COLUMNS = {
    "coverage": "Share of questions that got a ranking",
    "seconds": "Wall time for all questions, in batch, without what is done once for the corpus",
    "latency_ms_p50": "Median time of one warm question, ms",
    "latency_ms_p95": "95th percentile of one warm question, ms",
    "round_trips": "Calls to the graph store",
    "context_tokens": "Tokens of the context that a reader gets, a mean",
    "llm_calls": "Calls to a language model",
    "tokens": "Tokens sent to and received from a language model",
}
ANSWERS = ("answer_em", "answer_f1")


@dataclass(frozen=True)
class BoardRow:
    """A label's line in the leaderboard; `verdict` is empty for the baseline itself and where nothing was compared.

    `interval` is that of the mean, `beside` that of the difference, shown beside the verdict.
    """

    label: str
    kind: str
    in_sample: InSample | None
    hop_free: bool
    is_baseline: bool
    incomplete: bool
    metrics: Mapping[str, float | None]
    costs: Mapping[str, float | None]
    failures: int
    answered: float | None
    interval: tuple[float, float] | None
    beside: tuple[float, float] | None
    comparison: ComparisonEntry | None
    verdict: str


def metric_columns(data: ReportData) -> list[str]:
    """List the leaderboard's metrics that were measured, headline first."""
    shown = shown_metrics("report", data.metrics, data.primary)
    return [*shown, *(name for name in ragas_metrics(data.metrics) if name in data.metrics)]


def cost_columns(data: ReportData) -> dict[str, str]:
    """List the cost columns with their meaning; language-model columns only where one was called."""
    entries = data.strategies.values()
    optional = {name for name in ("llm_calls", "tokens") if not any(figure(entry, name) for entry in entries)}
    return {name: text for name, text in COST_COLUMNS.items() if name not in optional}


def reach(data: ReportData) -> dict[str, dict[str, float]]:
    """Collect the graph's ceilings: label → reach@1, the share of the corpus that it takes, reach@2, …"""
    ceilings = {}
    for label in data.labels:
        entry = data.strategies[label]
        known = {**entry["metrics"], **entry.get("reach", {})}
        names = sorted((name for name in known if name.startswith("reach")), key=_steps)
        if names:
            ceilings[label] = {name: known[name] for name in names}
    return ceilings


def observations(data: ReportData) -> dict[str, dict[str, float]]:
    """Collect counts per question: label → how its source's formulas behaved on this corpus and how its paths ended."""
    asked = data.results["benchmark"].get("questions") or 1
    by_label = {}
    for label in data.labels:
        entry = data.strategies[label]
        ends = {f"paths that ended by {name.replace('_', ' ')}": n for name, n in entry.get("terminations", {}).items()}
        counts = {name: count / asked for name, count in {**entry.get("observed", {}), **ends}.items()}
        means = {name.replace("_", " "): mean for name, mean in entry.get("counts", {}).items()}
        if counts or means:
            by_label[label] = {**means, **counts}
    return by_label


def stages(data: ReportData) -> dict[str, dict[str, float]]:
    """Collect milliseconds per question in batch: label → stage of the strategy → time."""
    asked = data.results["benchmark"].get("questions") or 1
    entries = {label: data.strategies[label].get("stage_seconds") or {} for label in data.labels}
    return {label: {name: 1000 * spent / asked for name, spent in own.items()} for label, own in entries.items() if own}


def _steps(name: str) -> tuple[str, bool]:
    """reach@1 before reach_share@1 (or reach@1_share) before reach@2."""
    return name.partition("@")[2].removesuffix("_share"), "share" in name


def board(data: ReportData) -> list[BoardRow]:
    """Make the leaderboard, best headline score first."""
    return [_board_row(data, label) for label in data.labels]


def _board_row(data: ReportData, label: str) -> BoardRow:
    entry = data.strategies[label]
    comparison = data.comparison(label)
    failures = int(entry.get("failures") or 0)
    asked = data.results["benchmark"].get("questions") or 1
    return BoardRow(
        label=label,
        kind=str(entry.get("kind", "")),
        in_sample=entry.get("in_sample"),
        hop_free=is_hop_free(label),
        is_baseline=label == data.baseline,
        incomplete=too_many_failed(failures, asked),
        metrics={name: entry["metrics"].get(name) for name in metric_columns(data)},
        costs={name: figure(entry, name) for name in COST_COLUMNS},
        failures=failures,
        answered=(entry.get("answered") or {}).get(data.primary) if failures else None,
        interval=data.interval(label, data.primary),
        beside=None if comparison is None else shown_interval(comparison),
        comparison=comparison,
        verdict="" if comparison is None or label == data.baseline else str(comparison["verdict"]),
    )


def failures(data: ReportData) -> dict[str, list[tuple[str, list[str]]]]:
    """Group failures: label → (reason, question ids), most frequent first; labels without any are absent."""
    grouped: dict[str, dict[str, list[str]]] = {}
    for (question_id, label), row in data.rows.items():
        if row["failure"] is not None:
            grouped.setdefault(label, {}).setdefault(row["failure"], []).append(question_id)
    return {
        label: sorted(grouped[label].items(), key=lambda item: (-len(item[1]), item[0]))
        for label in data.labels
        if label in grouped
    }


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
    """List RAGAS's metrics with the best mean of each, and a row per label in the leaderboard's order."""
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
    """List the targets' outcomes, failed ones first."""
    rows = [
        TargetRow(condition, label, outcome["value"], outcome["passed"])
        for condition, labels in (data.results.get("targets") or {}).items()
        for label, outcome in labels.items()
    ]
    return sorted(rows, key=lambda row: row.passed)


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
    """Make a breakdown for every metric with a column in the questions' table, the headline first."""
    known = [str(name) for name in data.questions.columns if data.questions[name].notna().any()]
    wanted = [name for name in dict.fromkeys((data.primary, *shown_in("breakdown"))) if name in known]
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
    """Average values, missing ones counting as the worst; None when every value is missing."""
    numbers = [float(v) if v is not None and isfinite(v) else None for v in values]
    if all(v is None for v in numbers):
        return None
    return fmean(worst if v is None else v for v in numbers)


def ceiling(metric: str, question: BenchmarkQuestion, titles: Mapping[str, str]) -> float | None:
    """Compute the best value that a ranking can reach on a question: all_gold@2 is 0 for four gold, recall@2 is 2/4."""
    if metric.partition("@")[0] not in ("all_gold", "recall") or not question.gold:
        return None
    return max(map(get_metric(metric).ceiling, gold_facts(question, titles)))


@dataclass(frozen=True)
class Cell:
    """A mean over the scored questions, their share, and the judge's spread where it scored more than once."""

    mean: float | None
    coverage: float | None = None
    judge_sd: float | None = None


@dataclass(frozen=True)
class Models:
    """The report's section on language models; `calls` is empty in a report made from files without details."""

    reader: str
    judge: JudgeEntry | None
    judged_by: str
    columns: Sequence[str]
    rows: Mapping[str, Mapping[str, Cell]]
    failures: Mapping[str, Mapping[str, Mapping[str, int]]]
    calls: Mapping[str, Mapping[str, Any]]


def models(data: ReportData) -> Models | None:
    """Make the section on language models; None where no model was called."""
    reader, judge = data.results.get("reader"), data.results.get("judge")
    if not reader and not judge:
        return None
    rows = {label: _model_row(data.strategies[label]) for label in data.labels}
    named = list(dict.fromkeys(name for row in rows.values() for name in row))
    failures = {label: _model_failures(data.strategies[label]) for label in data.labels}
    return Models(
        _named(reader) if reader else "",
        judge,
        _named(judge) if judge else "",
        [*(name for name in ANSWERS if name in named), *(name for name in named if name not in ANSWERS)],
        {label: row for label, row in rows.items() if row},
        {label: reasons for label, reasons in failures.items() if reasons},
        data.run.get("calls") or {},
    )


def _named(entry: ReaderEntry | JudgeEntry) -> str:
    """A model, how it was asked where that was set, and what its endpoint refused."""
    asked = [f"{name.replace('_', ' ')} {value}" for name, value in asked_of(entry).items()]
    return ", ".join([entry["llm"], *asked, *([f"its endpoint {entry['adapted']}"] if "adapted" in entry else [])])


def _model_row(entry: StrategyEntry) -> dict[str, Cell]:
    answered, measured = entry.get("answered") or {}, entry.get("measured") or {}
    row = {name: Cell(answered[name], measured.get(name)) for name in ANSWERS if name in answered}
    judged = entry.get("judged") or {}
    return row | {name: Cell(scores["mean"], scores["coverage"], scores["judge_sd"]) for name, scores in judged.items()}


def _model_failures(entry: StrategyEntry) -> dict[str, Mapping[str, int]]:
    by_metric = {name: scores["failures"] for name, scores in (entry.get("judged") or {}).items() if scores["failures"]}
    unanswered = entry["answering"]["failures"] if "answering" in entry else 0
    if not unanswered:
        return by_metric
    return {"answer": {"no answer (questions.parquet, answer_failure)": unanswered}, **by_metric}

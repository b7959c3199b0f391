"""The report's section on language models: answers and judged means by label, calls by purpose, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopbench.eval.answering.answers import JudgeEntry, ReaderEntry
from hopbench.eval.report.data import ReportData
from hopbench.eval.runs.schema import StrategyEntry
from hopbench.retrieval.llm.endpoint import asked_of

ANSWERS = ("answer_em", "answer_f1")


@dataclass(frozen=True)
class Cell:
    """A mean over the scored questions, their share, and the judge's spread where it was asked more than once."""

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
    """The section, None where no model was asked."""
    reader, judge = data.results.get("reader"), data.results.get("judge")
    if not reader and not judge:
        return None
    rows = {label: _row(data.strategies[label]) for label in data.labels}
    named = list(dict.fromkeys(name for row in rows.values() for name in row))
    failures = {label: _failures(data.strategies[label]) for label in data.labels}
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


def _row(entry: StrategyEntry) -> dict[str, Cell]:
    answered, measured = entry.get("answered") or {}, entry.get("measured") or {}
    row = {name: Cell(answered[name], measured.get(name)) for name in ANSWERS if name in answered}
    judged = entry.get("judged") or {}
    return row | {name: Cell(scores["mean"], scores["coverage"], scores["judge_sd"]) for name, scores in judged.items()}


def _failures(entry: StrategyEntry) -> dict[str, Mapping[str, int]]:
    by_metric = {name: scores["failures"] for name, scores in (entry.get("judged") or {}).items() if scores["failures"]}
    unanswered = entry["answering"]["failures"] if "answering" in entry else 0
    if not unanswered:
        return by_metric
    return {"answer": {"no answer (questions.parquet, answer_failure)": unanswered}, **by_metric}

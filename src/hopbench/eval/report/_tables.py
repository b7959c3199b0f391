"""The report's tables: leaderboard, breakdowns with ceilings, what strategies met, language models, failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Any

from hopbench.eval.metrics import get_metric, ragas_metrics, shown_in, shown_metrics, worst_of
from hopbench.eval.metrics.scoring import gold_facts
from hopbench.eval.report.data import ReportData, shown_interval
from hopbench.eval.runs.files import figure
from hopbench.eval.types import BenchmarkQuestion, too_many_failed
from hopbench.retrieval.llm.endpoint import asked_of

COST_COLUMNS = {  # column → heading, meaning, format
    "coverage": ("coverage", "Share of questions that got a ranking", ".1%"),
    "seconds": ("seconds", "Wall time for all questions, in batch, without what is done once for the corpus", ",.1f"),
    "latency_ms_p50": ("p50 ms", "Median time of one warm question, ms", ",.1f"),
    "latency_ms_p95": ("p95 ms", "95th percentile of one warm question, ms", ",.1f"),
    "round_trips": ("round trips", "Calls to the graph store", ",.0f"),
    "context_tokens": ("context tokens", "Tokens of the context that a reader gets, a mean", ",.0f"),
    "llm_calls": ("LLM calls", "Calls to a language model", ",.0f"),
    "tokens": ("tokens", "Tokens sent to and received from a language model", ",.0f"),
}
ANSWERS = ("answer_em", "answer_f1")


@dataclass(frozen=True)
class Group:
    """Questions that belong together; `ceiling` is None for metrics without one, `means` are by label."""

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


def board(data: ReportData) -> dict[str, Any]:
    """Make the leaderboard: a row per label, best headline score first, and the columns that were measured."""
    ragas = ragas_metrics(data.metrics)
    metrics = [
        *shown_metrics("report", data.metrics, data.primary),
        *(name for name in ragas if name in data.metrics),
    ]
    entries = data.strategies
    unused = {name for name in ("llm_calls", "tokens") if not any(figure(one, name) for one in entries.values())}
    rows = []
    for label in data.labels:
        entry, pair, failed = entries[label], data.compared.get(label), int(entries[label].get("failures") or 0)
        row = {
            "label": label,
            "kind": str(entry.get("kind", "")),
            "in_sample": data.in_sample.get(label),
            "is_baseline": label == data.baseline,
            "incomplete": too_many_failed(failed, data.results["benchmark"].get("questions") or 1),
            "metrics": {name: entry["metrics"].get(name) for name in metrics},
            "costs": {name: figure(entry, name) for name in COST_COLUMNS},
            "failures": failed,
            "answered": (entry.get("answered") or {}).get(data.primary) if failed else None,
            "interval": data.intervals.get(label, {}).get(data.primary),
            "pair": pair,
            "pair_interval": pair and shown_interval(pair),
            "verdict": "" if pair is None or label == data.baseline else str(pair["verdict"]),
        }
        rows.append(row)
    costs = {name: column for name, column in COST_COLUMNS.items() if name not in unused}
    return {"rows": rows, "metric_columns": metrics, "cost_columns": costs}


def reach(data: ReportData) -> dict[str, dict[str, float]]:
    """Collect the graph's ceilings: label → reach@1, the share of the corpus that it takes, reach@2, …"""
    ceilings = {}
    for label in data.labels:
        entry = data.strategies[label]
        known = {**entry["metrics"], **entry.get("reach", {})}
        names = [name for name in known if name.startswith("reach")]
        # reach@1 before reach_share@1 (or reach@1_share) before reach@2
        names.sort(key=lambda name: (name.partition("@")[2].removesuffix("_share"), "share" in name))
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


def breakdowns(data: ReportData) -> list[Breakdown]:
    """Make a breakdown for every metric with a column in the questions' table, the headline first."""
    known = [str(name) for name in data.questions.columns if data.questions[name].notna().any()]
    wanted = [name for name in dict.fromkeys((data.primary, *shown_in("breakdown"))) if name in known]
    wanted += ragas_metrics(known)
    wanted += sorted(name for name in known if re.fullmatch(r"reach@\d+", name))
    types: dict[str, list[BenchmarkQuestion]] = {}
    gold: dict[str, list[BenchmarkQuestion]] = {}
    for question in data.asked:
        types.setdefault(question.type or "no type", []).append(question)
        gold.setdefault(f"{question.gold.size:>3} gold", []).append(question)
    return [
        Breakdown(
            metric,
            [
                _group(data, metric, "all questions", data.asked),
                *(_group(data, metric, name, types[name]) for name in sorted(types)),
            ],
            [_group(data, metric, name.strip(), gold[name]) for name in sorted(gold)],
        )
        for metric in wanted
    ]


def _group(data: ReportData, metric: str, name: str, questions: Sequence[BenchmarkQuestion]) -> Group:
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


def models(data: ReportData) -> dict[str, Any] | None:
    """Make the section on language models; None where no model was called.

    A row's cell is (mean, share of the questions that it is of, the judge's spread where it scored more than once).
    """
    reader, judge = data.results.get("reader"), data.results.get("judge")
    if not reader and not judge:
        return None
    rows: dict[str, dict[str, tuple[float | None, float | None, float | None]]] = {}
    failed: dict[str, dict[str, Mapping[str, int]]] = {}
    for label in data.labels:
        entry = data.strategies[label]
        answered, judged = entry.get("answered") or {}, entry.get("judged") or {}
        shares = entry.get("measured") or {}
        cells = {name: (answered[name], shares.get(name), None) for name in ANSWERS if name in answered}
        means = {name: (scores["mean"], scores["coverage"], scores["judge_sd"]) for name, scores in judged.items()}
        unanswered = entry["answering"]["failures"] if "answering" in entry else 0
        reasons: dict[str, Mapping[str, int]] = {}
        if unanswered:
            reasons["answer"] = {"no answer (questions.parquet, answer_failure)": unanswered}
        reasons |= {name: scores["failures"] for name, scores in judged.items() if scores["failures"]}
        rows |= {label: {**cells, **means}} if cells or means else {}
        failed |= {label: reasons} if reasons else {}
    named = dict.fromkeys(name for row in rows.values() for name in row)
    described = []
    for model in (reader, judge):  # the model, how it was asked where that was set, and what its endpoint refused
        asked = [f"{name.replace('_', ' ')} {value}" for name, value in asked_of(model or {}).items()]
        refused = [f"its endpoint {model['adapted']}"] if model and "adapted" in model else []
        described.append(", ".join([model["llm"], *asked, *refused]) if model else "")
    return {
        "reader": described[0],
        "judge": judge,
        "judged_by": described[1],
        "columns": sorted(named, key=lambda name: name not in ANSWERS),
        "rows": rows,
        "failures": failed,
        "calls": data.run.get("calls") or {},
    }

"""What the numbers say: the conclusion in one sentence, the leaderboard's rows, the failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval.report.data import ReportData, is_hop_free

METRIC_COLUMNS = ("all_gold@10", "all_gold@5", "all_gold@2", "recall@5", "nDCG@10", "MRR", "has_answer")
COST_COLUMNS = {
    "coverage": "Share of questions that got a ranking",
    "seconds": "Wall time for all questions, in batch",
    "latency_ms_p50": "Median time of one warm question, ms",
    "latency_ms_p95": "95th percentile of one warm question, ms",
    "round_trips": "Calls to the graph store",
    "llm_calls": "Calls to a language model",
    "tokens": "Tokens sent to and received from a language model",
}
INCOMPLETE_SHARE = 0.05
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class BoardRow:
    """A label's line in the leaderboard; `verdict` is empty for the baseline itself and where nothing was compared."""

    label: str
    hop_free: bool
    is_baseline: bool
    incomplete: bool
    metrics: Mapping[str, float | None]
    costs: Mapping[str, float | None]
    failures: int
    answered: float | None
    interval: tuple[float, float] | None
    comparison: Mapping[str, Any] | None
    verdict: str


def metric_columns(data: ReportData) -> list[str]:
    """The leaderboard's metrics, headline first, only those that were measured."""
    wanted = [data.primary, *METRIC_COLUMNS]
    return [name for name in dict.fromkeys(wanted) if name in data.metrics]


def cost_columns(data: ReportData) -> dict[str, str]:
    """Cost columns with their meaning; language-model columns only where one was called."""
    entries = data.strategies.values()
    optional = {name for name in ("llm_calls", "tokens") if not any(entry.get(name) for entry in entries)}
    return {name: text for name, text in COST_COLUMNS.items() if name not in optional}


def board(data: ReportData) -> list[BoardRow]:
    """The leaderboard, best headline score first."""
    return [_board_row(data, label) for label in data.labels]


def _board_row(data: ReportData, label: str) -> BoardRow:
    entry = data.strategies[label]
    comparison = data.comparison(label)
    failures = int(entry.get("failures") or 0)
    asked = data.results["benchmark"].get("questions") or 1
    return BoardRow(
        label=label,
        hop_free=is_hop_free(label),
        is_baseline=label == data.baseline,
        incomplete=failures > INCOMPLETE_SHARE * asked,
        metrics={name: entry["metrics"].get(name) for name in metric_columns(data)},
        costs={name: entry.get(name) for name in COST_COLUMNS},
        failures=failures,
        answered=(entry.get("answered") or {}).get(data.primary) if failures else None,
        interval=data.interval(label, data.primary),
        comparison=comparison,
        verdict="" if comparison is None or label == data.baseline else str(comparison["verdict"]),
    )


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign: 0.064 → "+6.4"."""
    shown = f"{abs(100 * value):.1f}"
    return shown if shown == "0.0" else f"{MINUS if value < 0 else '+'}{shown}"


def meaning(metric: str, value: float) -> str:
    """A mean in plain words: "finds all evidence in the top 10 for 84.2% of questions"."""
    name, _, k = metric.partition("@")
    if name == "all_gold":
        return f"finds all evidence in the top {k} for {value:.1%} of questions"
    if name == "recall":
        return f"finds {value:.1%} of the evidence in the top {k}"
    if name == "has_answer":
        where = f"top {k}" if k else "context it hands on"
        return f"has the answer in the {where} for {value:.1%} of questions"
    return f"scores {value:.3f} on {metric}"


def conclusion(data: ReportData) -> str:
    """The result in plain language; says so where the best label is not distinguishable from the best baseline."""
    if not data.primary:
        return "No metric was measured: this benchmark has no gold passages and no answers."
    best = data.labels[0]
    scored = f"{best} {meaning(data.primary, data.strategies[best]['metrics'].get(data.primary) or 0.0)}"
    if not data.comparisons:
        return f"{scored}; nothing was compared."
    if best == data.baseline:
        return f"{scored}, and no other strategy here is ahead of this baseline.{_nearest(data)}"
    found = data.comparison(best)
    if found is None:
        return f"{scored}; it was not compared with the baseline {data.baseline}."
    return f"{scored}{_against(found, data.baseline)}"


def _against(found: Mapping[str, Any], baseline: str) -> str:
    effect = f"{points(found['effect'])} points [{points(found['ci_low'])}, {points(found['ci_high'])}]"
    kind = "the best hop-free baseline" if is_hop_free(baseline) else "the baseline"
    if found["verdict"] in ("better", "worse"):
        return f", {found['verdict']} than {kind} {baseline} by {effect}."
    return f", but that is not distinguishable from {kind} {baseline}: {effect}.{_detectable(found)}"


def _detectable(found: Mapping[str, Any]) -> str:
    if found.get("mde") is None:
        return ""
    return (
        f" With {found['n']} questions, this comparison would reliably show a difference of "
        f"{100 * found['mde']:.1f} points or more."
    )


def _nearest(data: ReportData) -> str:
    others = [c for c in (data.comparison(name) for name in data.labels if name != data.baseline) if c]
    if not others:
        return ""
    found = max(others, key=lambda c: (c["effect"], c["label"]))
    effect = f"{points(found['effect'])} points [{points(found['ci_low'])}, {points(found['ci_high'])}]"
    return f" The nearest, {found['label']}, is {found['verdict']}: {effect}.{_detectable(found)}"


def failures(data: ReportData) -> dict[str, list[tuple[str, list[str]]]]:
    """Label → (reason, question ids) pairs, most frequent reason first; labels without failures are absent."""
    grouped: dict[str, dict[str, list[str]]] = {}
    for (question_id, label), row in data.rows.items():
        if row["failure"] is not None:
            grouped.setdefault(label, {}).setdefault(row["failure"], []).append(question_id)
    return {
        label: sorted(grouped[label].items(), key=lambda item: (-len(item[1]), item[0]))
        for label in data.labels
        if label in grouped
    }

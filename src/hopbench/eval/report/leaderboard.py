"""The leaderboard's rows and columns, the graph's own ceilings, the failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hopbench.eval.metrics import added_names, ragas_metrics
from hopbench.eval.report.data import ReportData, is_hop_free, shown_interval
from hopbench.eval.runs.schema import ComparisonEntry, figure
from hopbench.eval.types import too_many_failed
from hopbench.retrieval.strategies.registry import InSample

METRIC_COLUMNS = (
    *("all_gold@10", "all_gold@5", "all_gold@2", "recall@5", "nDCG@10", "MRR"),
    *("has_answer", "has_answer@300t", "has_answer@700t"),
)
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
    """The leaderboard's metrics, headline first, only those that were measured."""
    wanted = [data.primary, *METRIC_COLUMNS, *added_names(data.metrics), *ragas_metrics(data.metrics)]
    return [name for name in dict.fromkeys(wanted) if name in data.metrics]


def cost_columns(data: ReportData) -> dict[str, str]:
    """Cost columns with their meaning; language-model columns only where one was called."""
    entries = data.strategies.values()
    optional = {name for name in ("llm_calls", "tokens") if not any(figure(entry, name) for entry in entries)}
    return {name: text for name, text in COST_COLUMNS.items() if name not in optional}


def reach(data: ReportData) -> dict[str, dict[str, float]]:
    """Label → the graph's own ceilings: reach@1, the share of the corpus that it takes, reach@2, …"""
    ceilings = {}
    for label in data.labels:
        entry = data.strategies[label]
        known = {**entry["metrics"], **entry.get("reach", {})}
        names = sorted((name for name in known if name.startswith("reach")), key=_steps)
        if names:
            ceilings[label] = {name: known[name] for name in names}
    return ceilings


def observations(data: ReportData) -> dict[str, dict[str, float]]:
    """Label → what its source's formulas made of this corpus and how its paths ended, as numbers a question."""
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
    """Label → milliseconds a question in batch that each stage of the strategy took."""
    asked = data.results["benchmark"].get("questions") or 1
    entries = {label: data.strategies[label].get("stage_seconds") or {} for label in data.labels}
    return {label: {name: 1000 * spent / asked for name, spent in own.items()} for label, own in entries.items() if own}


def _steps(name: str) -> tuple[str, bool]:
    """reach@1 before reach_share@1 (or reach@1_share) before reach@2."""
    return name.partition("@")[2].removesuffix("_share"), "share" in name


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

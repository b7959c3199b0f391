"""The registry of metrics, read by documentation, scoring, tracking and reports; and which metric is primary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from hopbench.eval.metrics import answer_match, answers, joined, ragas_context, ranking, titles
from hopbench.eval.metrics.base import Group, Metric
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError, UnknownNameError

PRIMARY = "all_gold@10"
"""The metric on which comparisons, baselines and nightly verdicts stand unless told otherwise."""

_METRICS: dict[str, Metric] = {}


def register(metric: Metric) -> Metric:
    """Add a metric; refuses a name, or a tracking name, that is taken."""
    taken = {mlflow_name(known): known for known in _METRICS}
    if mlflow_name(metric.name) in taken:
        raise InputError(f"metric {metric.name!r} is registered already; give the new one another name")
    _METRICS[metric.name] = metric
    return metric


def get_metric(name: str) -> Metric:
    """The metric of that name; UnknownNameError offers the nearest one."""
    if name not in _METRICS:
        raise UnknownNameError("metric", name, _METRICS)
    return _METRICS[name]


def all_metrics(group: Group | None = None) -> Mapping[str, Metric]:
    """Name → metric in the order of registration, all or one group's (read-only)."""
    chosen = {name: m for name, m in _METRICS.items() if group is None or m.group == group}
    return MappingProxyType(chosen)


def ragas_metrics(names: Iterable[object]) -> list[str]:
    """Which of some names are RAGAS's metrics, those without a model first, in the order of registration."""
    present = set(names)
    return [name for group in ("ragas", "judge") for name in all_metrics(group) if name in present]


def sign_of(name: str) -> float:
    """The metric's `sign`; 1 for a name that is not registered, as of a package that is not installed any more."""
    return _METRICS[name].sign if name in _METRICS else 1.0


def worst_of(name: str) -> float:
    """What a failed question counts in the metric's mean; 0 for a name that is not registered."""
    return _METRICS[name].worst if name in _METRICS else 0.0


def rank_key(name: str, value: float | None) -> float:
    """Sorts values of a metric best first; what was not measured comes last."""
    return math.inf if value is None or math.isnan(value) else -sign_of(name) * value


def best_value(name: str, values: Iterable[float | None]) -> float | None:
    """The best of the measured values of a metric; None where there is none."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return min(known, key=lambda value: rank_key(name, value), default=None)


def mlflow_name(name: str) -> str:
    """The name under which MLflow takes a metric, as it refuses "@": `recall@5` → `recall_at_5`."""
    return name.replace("@", "_at_")


def _register_all(families: Iterable[Iterable[Metric]]) -> None:
    for family in families:
        for metric in family:
            register(metric)


_register_all(
    (
        ranking.METRICS,
        answers.METRICS,
        titles.METRICS,
        ragas_context.METRICS,
        joined.REACH,
        answer_match.METRICS,
        joined.JUDGED,
    )
)


PRIMARIES = (PRIMARY, "has_answer@10")
"""The primary metric is the first of these that applies to a question of the benchmark."""

ADD_GOLD = (
    "gold passages go into qrels/test.tsv beside queries.jsonl (query-id, corpus-id, score; tab-separated, with that "
    "heading)"
)
ADD_ANSWERS = "answers into queries.jsonl (metadata.answer, metadata.answer_aliases)"


def primary_metric(benchmark: Benchmark) -> str | None:
    """The benchmark's primary metric: by gold passages, else by answers that a text can contain, else none."""
    return _first(name for name in PRIMARIES if any(map(get_metric(name).applies, benchmark.questions)))


def primary_of(results: Mapping[str, Any]) -> str | None:
    """The primary metric named in results.json; in files of older versions, the first that was measured."""
    benchmark = results["benchmark"]
    if "primary_metric" in benchmark:
        return None if benchmark["primary_metric"] is None else str(benchmark["primary_metric"])
    measured = {name for entry in (results.get("strategies") or {}).values() for name in entry["metrics"]}
    return _first(name for name in PRIMARIES if name in measured)


def lacking(primary: str | None) -> str:
    """What a benchmark with this primary metric is missing and how to add it; empty where nothing is."""
    if primary == PRIMARY:
        return ""
    if primary is not None:
        return f"no question has gold passages, so {primary} decides; to know whether evidence was found: {ADD_GOLD}"
    return (
        "no question has gold passages or an answer that a text can show, so nothing says which strategy is better, "
        f"and none is ahead here: {ADD_GOLD}, {ADD_ANSWERS}; a judge can score without gold (--llm with --judge)"
    )


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)

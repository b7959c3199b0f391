"""A label's figures in one night, with the interval that says how much chance there is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hopbench.eval.metrics import PRIMARY
from hopbench.eval.runs.evaluate import interval_of
from hopbench.flows.nights.history import NightlyRecord
from hopbench.retrieval.support.errors import InputError

CHARTED = 60
"""Nights in a report's chart; `hopbench history` has all of them."""

INTERVAL = "interval"


@dataclass(frozen=True)
class Point:
    """A label in one night: the mean of the primary metric with its 95% interval, and its p50 latency in ms.

    `low` and `high` are None where the night's rows have under two questions, or cannot be read.
    """

    night: str
    started: str
    outcome: str
    digest: str
    label: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    latency_ms_p50: float | None


def points_of(night: NightlyRecord, wanted: str | None = None) -> Iterator[Point]:
    """The points of a night, by label; only the `wanted` one where that is given."""
    metric = str(night.content.get("metric") or PRIMARY)
    for label in sorted(night.labels):
        if wanted not in (None, label):
            continue
        entry = night.labels[label]
        low, high = entry.get(INTERVAL) or _interval(night, label, metric)
        yield Point(
            night.name,
            str(night.content["started"]),
            str(night.content["outcome"]),
            night.digest,
            label,
            metric,
            entry.get(metric),
            low,
            high,
            entry.get("latency_ms_p50"),
        )


def _interval(night: NightlyRecord, label: str, metric: str) -> tuple[float | None, float | None]:
    """The interval of a night that did not record it; one whose rows are damaged has none."""
    try:
        rows = night.rows_of(label)
    except InputError:
        return None, None
    if metric not in rows.columns:
        return None, None
    return interval_of(rows, metric) or (None, None)


def charted(tonight: NightlyRecord, earlier: Sequence[NightlyRecord]) -> list[dict[str, Any]]:
    """What a report draws over the nights of one benchmark, oldest first; empty where tonight's is the only one.

    `earlier` are nights on the same questions, newest first. Only tonight's labels and metric are drawn.
    """
    metric = tonight.content.get("metric") or PRIMARY
    alike = [night for night in earlier if (night.content.get("metric") or PRIMARY) == metric]
    if not alike:
        return []
    return [
        {name: getattr(point, name) for name in ("started", "label", "metric", "value", "low", "high")}
        for night in [*reversed(alike[: CHARTED - 1]), tonight]
        for point in points_of(night)
        if point.label in tonight.labels and point.value is not None
    ]

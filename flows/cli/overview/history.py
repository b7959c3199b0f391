"""Each label's scores over a benchmark's nightly runs, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hopbench.eval.compare import mean_ci
from hopbench.eval.metrics import PRIMARY
from hopbench.eval.metrics.registry import worst_of
from hopbench.flows.nightly.history import NightlyRecord, nights
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, UnknownNameError


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


def history(benchmark: str, home: Home, label: str | None = None) -> list[Point]:
    """The points of a benchmark's labels, oldest night first, then by label.

    Raises
    ------
    UnknownNameError
        For a benchmark without nights, or a label that none of them has.
    InputError
        When there are no nightly records.
    """
    kept = nights(home.nights)
    if not kept:
        raise InputError(f"no night is kept in {home.nights} yet: hopbench nightly makes one")
    named = [night for night in reversed(kept) if night.content["benchmark"].get("name") == benchmark]
    if not named:
        raise UnknownNameError("benchmark with nights", benchmark, {str(n.content["benchmark"]["name"]) for n in kept})
    labels = {name for night in named for name in night.labels}
    if label is not None and label not in labels:
        raise UnknownNameError(f"label in the nights of {benchmark}", label, labels)
    return [point for night in named for point in _points(night, label)]


def _points(night: NightlyRecord, wanted: str | None) -> Iterator[Point]:
    metric = str(night.content.get("metric") or PRIMARY)
    for label in sorted(night.labels):
        if wanted not in (None, label):
            continue
        entry = night.labels[label]
        low, high = _interval(night, label, metric)
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
    """The interval of the zero-filled mean; a night whose rows are damaged has none."""
    try:
        rows = night.rows_of(label)
    except InputError:
        return None, None
    if metric not in rows.columns:
        return None, None
    values = rows[metric].where(rows["failure"].isna(), worst_of(metric)).dropna()
    found = mean_ci(values.to_numpy(float))
    return (None, None) if found is None else (found.low, found.high)

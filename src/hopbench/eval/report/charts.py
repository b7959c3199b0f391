"""The report's figures as Plotly's JSON, without colours: the page gives them those of its light or dark theme.

A trace's `meta.series` is the label's place in the leaderboard; the page draws its colour and symbol from that, so a
label looks the same in every chart. Chart text is escaped here because Plotly reads some HTML tags in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hopbench.eval.metrics import sign_of
from hopbench.eval.metrics.base import CUTOFFS
from hopbench.eval.report._tables import Breakdown
from hopbench.eval.report.data import ReportData
from hopbench.retrieval.strategies.label import Label

Figure = dict[str, Any]
"""A chart as Plotly's JSON: `id`, `traces`, `layout`, and what the page's script needs beside them."""


def figures(data: ReportData, split: list[Breakdown]) -> list[Figure]:
    """Draw every chart that the run's metrics allow: depth, latency, types, and over the nights."""
    made = [depth_curves(data), quality_against_latency(data), by_type(data, split), over_nights(data)]
    return [figure for figure in made if figure is not None]


def depth_curves(data: ReportData) -> Figure | None:
    """Draw all_gold@k over k for each label, with confidence intervals."""
    depths = [k for k in CUTOFFS if f"all_gold@{k}" in data.metrics]
    if len(depths) < 2:
        return None
    traces = []
    for label in data.labels:
        scores = [data.strategies[label]["metrics"].get(f"all_gold@{k}") for k in depths]
        pairs = [data.intervals.get(label, {}).get(f"all_gold@{k}") for k in depths]
        trace = _trace(data, label, [str(k) for k in depths], scores, "lines+markers", pairs)
        traces.append(trace | {"hovertemplate": "top %{x}: %{y:.3f}"})
    layout = {"xaxis": {"title": {"text": "passages read, k"}, "type": "category"}, "yaxis": _axis("all_gold@k")}
    return {"id": "curves", "traces": traces, "layout": layout | {"hovermode": "x unified", "showlegend": True}}


def quality_against_latency(data: ReportData) -> Figure | None:
    """Draw the headline metric over the median latency of one question (log scale), with the Pareto front."""
    metric, known = data.primary, []
    for label in data.labels if metric else ():
        ms, score = data.strategies[label].get("latency_ms_p50"), data.strategies[label]["metrics"].get(metric)
        if ms and score is not None:
            known.append((label, ms, score))
    if not known:
        return None
    times = [ms for _, ms, _ in known]
    middle = (min(times) * max(times)) ** 0.5
    front = pareto(known, sign_of(metric))
    line = {"x": [ms for _, ms, _ in front], "y": [score for _, _, score in front], "mode": "lines", "type": "scatter"}
    style = {"name": "Pareto front", "line": {"shape": "hv"}, "meta": {"front": True}, "hoverinfo": "skip"}
    traces: list[Figure] = [line | style]
    for label, ms, score in known:
        pair = data.intervals.get(label, {}).get(metric)
        trace = _trace(data, label, [ms], [score], "markers+text", [pair])
        side = "top left" if ms > middle else "top right"  # beside the error bar, above the front
        hover = "%{x:.1f} ms, %{y:.3f}"
        traces.append(trace | {"text": [f" {trace['name']} "], "textposition": side, "hovertemplate": hover})
    ticks = [base * 10**power for power in range(-3, 7) for base in (1, 2, 5)]
    axis = {"title": {"text": "median latency of one question, ms (log)"}, "type": "log", "tickvals": ticks}
    axis["ticktext"] = [f"{tick:g}" for tick in ticks]
    layout = {"xaxis": axis, "yaxis": _axis(metric, from_zero=False)}
    return {"id": "latency", "traces": traces, "layout": layout}


def pareto(places: list[tuple[str, float, float]], sign: float = 1.0) -> list[tuple[str, float, float]]:
    """Select the (label, ms, score) that no other beats on both, fastest first; `sign` −1: lower scores are better."""
    front: list[tuple[str, float, float]] = []
    for place in sorted(places, key=lambda p: (p[1], -sign * p[2], p[0])):
        if not front or sign * place[2] > sign * front[-1][2]:
            front.append(place)
    return front


def by_type(data: ReportData, split: list[Breakdown]) -> Figure | None:
    """Draw a dot for each label on each type's line, with the ceiling as a bar."""
    if not split or len(split[0].by_type) < 3:  # all questions and a single type say the same
        return None
    groups = split[0].by_type[::-1]
    rows = [f"{escape(group.name)} ({group.questions})" for group in groups]
    hover = {"hovertemplate": "%{y}: %{x:.3f}"}
    traces = [
        _trace(data, label, [group.means[label] for group in groups], rows, "markers") | hover for label in data.labels
    ]
    if all(group.ceiling is not None for group in groups):
        ceiling = {"x": [group.ceiling for group in groups], "y": rows, "mode": "markers", "type": "scatter"}
        traces.insert(0, ceiling | {"name": "ceiling", "meta": {"ceiling": True}} | hover)
    layout = {"xaxis": _axis(split[0].metric), "yaxis": {"type": "category"}, "showlegend": True}
    return {"id": "types", "traces": traces, "layout": layout, "rows": len(rows)}


def over_nights(data: ReportData) -> Figure | None:
    """Draw the primary metric of each label over the nights on these questions, with intervals (two nights or more)."""
    night: Mapping[str, Any] = data.run.get("nightly") or {}
    points: Sequence[Mapping[str, Any]] = night.get("history") or ()
    if max(Counter(point["label"] for point in points).values(), default=0) < 2:
        return None
    traces = []
    for label in data.labels:
        own = [point for point in points if point["label"] == label]
        pairs = [None if point["low"] is None else (point["low"], point["high"]) for point in own]
        starts, scores = [point["started"][:19] for point in own], [point["value"] for point in own]
        trace = _trace(data, label, starts, scores, "lines+markers", pairs)
        traces.append(trace | {"hovertemplate": "%{x|%Y-%m-%d %H:%M}: %{y:.3f}"})
    dates = {"title": {"text": "night, UTC"}, "type": "date", "hoverformat": "%Y-%m-%d %H:%M"}
    layout = {"xaxis": dates, "yaxis": _axis(points[0]["metric"], from_zero=False), "showlegend": True}
    return {"id": "nights", "traces": traces, "layout": layout}


def _trace(
    data: ReportData,
    label: str,
    x: list[Any],
    y: list[Any],
    mode: str,
    pairs: Sequence[Sequence[float] | None] = (None,),
) -> Figure:
    """A label's points, with error bars where all of them have an interval."""
    meta = {"series": data.labels.index(label), "hop_free": Label.of_any(label).is_hop_free}
    name = escape(label) + (" *" if label in data.in_sample else "")
    trace: Figure = {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y, "meta": meta}
    bounds = [pair for pair in pairs if pair is not None]
    if len(bounds) < len(pairs):
        return trace
    up = [high - (score or 0.0) for (_, high), score in zip(bounds, y, strict=True)]
    down = [(score or 0.0) - low for (low, _), score in zip(bounds, y, strict=True)]
    bars = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "width": 3}
    return trace | {"error_y": bars}


def _axis(metric: str, *, from_zero: bool = True) -> Figure:
    """A metric's axis; up, or to the right, is always better: where less is better it is reversed and labelled so."""
    lower = sign_of(metric) < 0
    axis: Figure = {"title": {"text": escape(metric) + (" (lower is better)" if lower else "")}, "tickformat": ".1f"}
    if not from_zero:
        return axis | {"tickformat": ".2f"} | ({"autorange": "reversed"} if lower else {})
    return axis | {"range": [1.02, 0] if lower else [0, 1.02]}

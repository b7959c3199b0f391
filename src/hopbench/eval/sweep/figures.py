"""Quality against cost, and the response to each parameter, as Plotly's JSON; the page gives them its colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hopbench.eval.metrics import rank_key, sign_of
from hopbench.eval.report.charts import Figure
from hopbench.eval.sweep.response import Response
from hopbench.eval.sweep.results import Result

CURVES = 12


@dataclass(frozen=True)
class Place:
    """A whole configuration in the cost space: objective, milliseconds, tokens; `front` if none beats it in all."""

    result: Result
    value: float
    ms: float
    tokens: float
    front: bool = False


def varied(result: Result) -> str:
    """What the search gave a configuration, in words."""
    parts = [f"{name}={value}" for name, value in result.candidate.varied.items()]
    lacks = [f"without {edge}" for edge in result.candidate.without]
    return ", ".join([*parts, *lacks]) or "as the file's base"


def front(results: Sequence[Result], metric: str, timed: bool) -> list[Place]:
    """Whole configurations with their costs; none beats those on the front in one and equals them in the rest."""
    places = []
    for result in results:
        ms, tokens = milliseconds(result, timed), spent_tokens(result)
        if ms is not None and tokens is not None:
            places.append(Place(result, result.mean(metric), ms, tokens))
    keys = [(rank_key(metric, place.value), place.ms, place.tokens) for place in places]
    return [
        Place(place.result, place.value, place.ms, place.tokens, not any(_beats(other, key) for other in keys))
        for place, key in zip(places, keys, strict=True)
    ]


def _beats(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def milliseconds(result: Result, timed: bool) -> float | None:
    """The p95 of single calls where it was measured, else the batch's time per question."""
    if timed:
        return result.cost("latency_ms_p95")
    each = [1000 * record.seconds / max(1, len(record.questions)) for record in result.records.values()]
    return sum(each) / len(each)


def spent_tokens(result: Result) -> float | None:
    """Tokens a question: what the reader would be given, and what the strategy's own model read and wrote."""
    context = result.cost("context_tokens")
    if context is None:
        return None
    own = [record.costs.get("tokens", 0.0) / max(1, len(record.questions)) for record in result.records.values()]
    return context + sum(own) / len(own)


def pareto_figure(metric: str, places: Sequence[Place], timed: bool) -> Figure:
    """Quality over time; the size of a mark shows tokens, open marks are beaten in all three."""
    names = list(dict.fromkeys(place.result.candidate.strategy.name for place in places))
    most = max((place.tokens for place in places), default=1.0) or 1.0
    traces = []
    for series, name in enumerate(names):
        own = [place for place in places if place.result.candidate.strategy.name == name]
        for beaten in (True, False):
            some = [place for place in own if place.front is not beaten]
            if not some:
                continue
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": escape(name) + (" (beaten)" if beaten else ""),
                    "x": [round(place.ms, 3) for place in some],
                    "y": [place.value for place in some],
                    "text": [f"{escape(varied(place.result))}<br>{place.tokens:.0f} tokens" for place in some],
                    "hovertemplate": "%{text}<br>%{x:.2f} ms, %{y:.3f}<extra></extra>",
                    "meta": {
                        "series": series,
                        "hop_free": beaten,
                        "sizes": [round(6 + 10 * place.tokens / most, 1) for place in some],
                    },
                }
            )
    title = "p95 of one question, ms (log)" if timed else "time of one question in a batch, ms (log)"
    ticks = [base * 10**power for power in range(-3, 7) for base in (1, 2, 5)]
    axis = {"title": {"text": title}, "type": "log", "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}
    layout = {"xaxis": axis, "yaxis": _axis(metric), "showlegend": True}
    return {"id": "pareto", "traces": traces, "layout": layout}


def curves(metric: str, answers: Sequence[Response]) -> list[Figure]:
    """A response curve with its band for each of the most important parameters."""
    names = list(dict.fromkeys(answer.strategy for answer in answers))
    chosen = sorted(answers, key=lambda answer: -(answer.importance or 0.0))[:CURVES]
    return [
        _curve(metric, answer, names.index(answer.strategy), f"response-{place}")
        for place, answer in enumerate(answers)
        if answer in chosen
    ]


def _curve(metric: str, answer: Response, series: int, name: str) -> Figure:
    x = [point.value if answer.numeric else str(point.value) for point in answer.points]
    mean, low, high = ([getattr(point, part) for point in answer.points] for part in ("mean", "low", "high"))
    meta = {"series": series, "hop_free": False}
    line: Figure = {"type": "scatter", "name": "mean", "mode": "lines+markers", "x": x, "y": mean, "meta": meta}
    line["hovertemplate"] = "%{x}: %{y:.3f}<extra>mean</extra>"
    best: Figure = {"type": "scatter", "name": "best", "mode": "markers", "x": x, "meta": {**meta, "hop_free": True}}
    best |= {"y": [point.best for point in answer.points], "hovertemplate": "%{x}: %{y:.3f}<extra>best</extra>"}
    traces = [line, best]
    if answer.numeric:
        band = {"type": "scatter", "mode": "lines", "name": "95%", "x": [*x, *x[::-1]], "y": [*high, *low[::-1]]}
        traces.insert(0, {**band, "meta": {**meta, "band": True}})
    else:
        up = [h - m for h, m in zip(high, mean, strict=True)]
        down = [m - bound for bound, m in zip(low, mean, strict=True)]
        line["mode"] = "markers"
        line["error_y"] = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "width": 4}
    values = [point.value for point in answer.points]
    wide = answer.numeric and min(values) > 0 and max(values) / min(values) >= 50  # type: ignore[operator]
    axis: Figure = {"title": {"text": escape(answer.parameter)}, "type": "log" if wide else "-"}
    if not answer.numeric:
        axis["type"] = "category"
    heading = f"{answer.strategy}: {answer.parameter}"
    return {"id": name, "title": heading, "traces": traces, "layout": {"xaxis": axis, "yaxis": _axis(metric)}}


def _axis(metric: str) -> Figure:
    """A metric's axis; up is always better: where less is better it is reversed and labelled so."""
    lower = sign_of(metric) < 0
    title = {"text": escape(metric) + (" (lower is better)" if lower else ""), "standoff": 14}
    return {"title": title, "tickformat": ".3f"} | ({"autorange": "reversed"} if lower else {})

"""The report of a sweep: the winner and what its lead is worth, what each parameter does, quality against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import yaml

from eval.files import write_atomically
from eval.report import render_page
from eval.sweep.plan import SweepPlan, ablated
from eval.sweep.response import Response, responses
from eval.sweep.results import Result
from eval.sweep.selection import Selection

Figure = dict[str, Any]
SHOWN = 200
CURVES = 12


@dataclass(frozen=True)
class Place:
    """A whole configuration in the cost space: objective, milliseconds, tokens; `front` if none beats it in all."""

    result: Result
    value: float
    ms: float
    tokens: float
    front: bool = False


@dataclass(frozen=True)
class SweepReport:
    """What the page shows; results are best first."""

    plan: SweepPlan
    results: Sequence[Result]
    reported: Result | None
    bias: Selection | None
    warnings: Sequence[str]
    best_yaml: str

    @property
    def metric(self) -> str:
        """The objective."""
        return self.plan.content.objective.metric

    @property
    def whole(self) -> list[Result]:
        """The results on all questions."""
        return [one for one in self.results if one.dropped_at is None]


def write_sweep_report(report: SweepReport, path: Path) -> None:
    """Write the page, whole or not at all."""
    answers = responses(report.results, report.metric, report.plan.content.seed)
    places = front(report)
    timed = report.plan.content.timed
    figures = [pareto_figure(report, places, timed), *curves(report, answers)]
    page = render_page(
        "sweep.html.j2",
        report=report,
        best=report.results[0],
        places={place.result.candidate.key: place for place in places},
        responses=answers,
        figures=[figure for figure in figures if figure["traces"]],
        varied=varied,
        ablations=_ablations(report),
        timed=timed,
        shown=SHOWN,
    )
    write_atomically(path, page.encode())


def varied(result: Result) -> str:
    """What the search gave a configuration, in words."""
    parts = [f"{name}={value}" for name, value in result.candidate.varied.items()]
    lacks = [f"without {edge}" for edge in result.candidate.without]
    return ", ".join([*parts, *lacks]) or "as the file's base"


def front(report: SweepReport) -> list[Place]:
    """Whole configurations with their costs; none beats those on the front in one and equals them in the rest."""
    places = []
    for result in report.whole:
        ms, tokens = milliseconds(result, report.plan.content.timed), spent_tokens(result)
        if ms is not None and tokens is not None:
            places.append(Place(result, result.mean(report.metric), ms, tokens))
    keys = [(-place.value, place.ms, place.tokens) for place in places]
    return [
        Place(one.result, one.value, one.ms, one.tokens, not any(_beats(other, key) for other in keys))
        for one, key in zip(places, keys, strict=True)
    ]


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


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


def pareto_figure(report: SweepReport, places: Sequence[Place], timed: bool) -> Figure:
    """Quality over time, the size of a mark telling tokens; open marks are beaten in all three."""
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
    layout = {"xaxis": axis, "yaxis": _share(report.metric), "showlegend": True}
    return {"id": "pareto", "traces": traces, "layout": layout}


def curves(report: SweepReport, answers: Sequence[Response]) -> list[Figure]:
    """A response curve with its band for each of the most important parameters."""
    names = list(dict.fromkeys(answer.strategy for answer in answers))
    chosen = sorted(answers, key=lambda one: -(one.importance or 0.0))[:CURVES]
    return [
        _curve(report.metric, answer, names.index(answer.strategy), f"response-{place}")
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
        down = [m - one for one, m in zip(low, mean, strict=True)]
        line["mode"] = "markers"
        line["error_y"] = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "width": 4}
    values = [point.value for point in answer.points]
    wide = answer.numeric and min(values) > 0 and max(values) / min(values) >= 50  # type: ignore[operator]
    axis: Figure = {"title": {"text": escape(answer.parameter)}, "type": "log" if wide else "-"}
    if not answer.numeric:
        axis["type"] = "category"
    heading = f"{answer.strategy}: {answer.parameter}"
    return {"id": name, "title": heading, "traces": traces, "layout": {"xaxis": axis, "yaxis": _share(metric)}}


def _share(title: str) -> Figure:
    return {"title": {"text": escape(title), "standoff": 14}, "tickformat": ".3f"}


def _ablations(report: SweepReport) -> list[tuple[str, str, float, float | None]]:
    """(configuration, without, value, change) of each ablation; a change of None: the edges are not used."""
    by_key = {result.candidate.key: result for result in report.results}
    rows: list[tuple[str, str, float, float | None]] = []
    for candidate in report.plan.candidates if report.plan.content.ablations else ():
        if candidate.of is not None:
            continue
        whole = by_key[candidate.key].mean(report.metric)
        for variant, edges in ablated(candidate.strategy).items():
            value = by_key[variant, candidate.build].mean(report.metric)
            change = None if variant == candidate.strategy else value - whole
            rows.append((candidate.title, ", ".join(edges), value, change))
    return rows


def best_yaml(plan: SweepPlan, best: Result) -> str:
    """The winner as a file for `hopbench run --config`."""
    build, content = best.candidate.build, plan.content
    flags = {
        "dataset": plan.report_on or plan.datasets[0],
        "strategies": best.candidate.label,
        "store": content.store,
        "embedder": build.embedder,
        "extractor": build.extractor,
        **build.settings(),
    }
    metric = content.objective.metric
    told = f"# The best configuration of {plan.file.name}: {metric} {best.mean(metric):.3f}\n"
    return f"{told}# hopbench run --config best.yaml --out DIR\n{yaml.safe_dump(flags, sort_keys=False, width=120)}"

"""The report of a sweep: the winner and what its lead is worth, what each parameter does, quality against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from operator import le
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import rank_key, sign_of
from hopbench.eval.report import render_page
from hopbench.eval.report.charts import Figure
from hopbench.eval.sweep.fields import Scalar
from hopbench.eval.sweep.plan import SweepPlan, ablated
from hopbench.eval.sweep.results import (
    Array,
    Result,
    Selection,
    model_scores,
    question_scores,
    readers_of,
    scored_columns,
)
from hopbench.eval.sweep.space import BUILD
from hopbench.retrieval.support.arithmetic import summable

RESAMPLES = 1_000
BINS = 6
MIN_SCORES = 4
CURVES = 12
SHOWN = 200


@dataclass(frozen=True)
class Point:
    """The configurations with one value (or a bin of values, by its mean): their mean, its 95% interval, the best."""

    value: Scalar
    mean: float
    low: float
    high: float
    best: float
    configurations: int


@dataclass(frozen=True)
class Response:
    """A parameter of a strategy: its values' points in order, and the share of the variance that it explains."""

    strategy: str
    parameter: str
    points: Sequence[Point]
    importance: float | None


def responses(results: Sequence[Result], metric: str, seed: int) -> list[Response]:
    """List the response to every parameter that varies among whole results, max_tokens important first, by strategy."""
    ordered: list[Response] = []
    by_strategy: dict[str, list[Result]] = {}
    for result in results:
        if result.dropped_at is None and result.candidate.of is None:
            by_strategy.setdefault(result.candidate.strategy.name, []).append(result)
    for strategy, own in by_strategy.items():
        values = _effective_values(own)
        shares = _importances(values, [result.mean(metric) for result in own], seed)
        draws = _draws(own, metric, seed)
        for name in sorted(values, key=lambda name: -shares.get(name, 0.0)):
            points = [
                _point(value, [own[place] for place in members], metric, [(scores[members], d) for scores, d in draws])
                for value, members in _groups(values[name]).items()
            ]
            ordered.append(Response(strategy, name, points, shares.get(name)))
    return ordered


def _effective_values(results: Sequence[Result]) -> dict[str, list[Scalar]]:
    """Collect the values of each varying parameter: parameter → its value in each configuration."""
    varied: dict[str, list[Scalar]] = {}
    for name in dict.fromkeys(name for result in results for name in result.candidate.varied):
        owners = [result.candidate.build if name.startswith(BUILD) else result.candidate.strategy for result in results]
        values = [getattr(owner, name.removeprefix(BUILD)) for owner in owners]
        if len(set(values)) > 1:
            varied[name] = ["default" if value is None else value for value in values]
    return varied


def _importances(values: Mapping[str, Sequence[Scalar]], scores: Sequence[float], seed: int) -> dict[str, float]:
    """Compute each parameter's share of the variance by fANOVA (Hutter et al., ICML 2014), as Optuna computes it.

    Empty for too few configurations, or when they all score the same.
    """
    if len(scores) < MIN_SCORES or np.ptp(scores) == 0 or not values:
        return {}
    if len(values) == 1:
        return dict.fromkeys(values, 1.0)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    distributions: dict[str, optuna.distributions.BaseDistribution]
    distributions = {name: optuna.distributions.CategoricalDistribution(_sorted(v)) for name, v in values.items()}
    for place, score in enumerate(scores):
        params = {name: own[place] for name, own in values.items()}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=score))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))


def _sorted(values: Sequence[Scalar]) -> list[Scalar]:
    return sorted(set(values), key=lambda value: (type(value).__name__, value))


def _draws(results: Sequence[Result], metric: str, seed: int) -> list[tuple[Array, Array]]:
    """For each data set the (configurations, questions) scores, and how often each resample drew each question."""
    rng = np.random.default_rng(seed)
    draws = []
    for dataset in results[0].by_dataset:
        scores = question_scores(results, dataset, metric)
        if not scores.size:  # nothing was ranked: its mean is 0
            scores = np.zeros((len(results), 1))
        size = scores.shape[1]
        draws.append((scores, rng.multinomial(size, np.full(size, 1 / size), size=RESAMPLES).astype(float)))
    return draws


def _point(value: Scalar, members: Sequence[Result], metric: str, draws: Sequence[tuple[Array, Array]]) -> Point:
    means = [scores.mean(axis=0) for scores, _ in draws]
    # Products with `summable` numbers are the same on every processor.
    resampled = [drawn @ summable(mean, len(mean)) / len(mean) for mean, (_, drawn) in zip(means, draws, strict=True)]
    low, high = np.quantile(np.mean(resampled, axis=0), [0.025, 0.975])
    best = min((result.mean(metric) for result in members), key=lambda mean: rank_key(metric, mean))
    mean = float(np.mean([by_question.mean() for by_question in means]))
    return Point(value, mean, float(low), float(high), best, len(members))


def _groups(values: Sequence[Scalar]) -> dict[Scalar, list[int]]:
    """Value → the configurations that have it, in order; many numbers are put into bins of equal size."""
    distinct = _sorted(values)
    if len(distinct) <= 2 * BINS or not all(type(value) in {int, float} for value in distinct):
        return {value: [place for place, own in enumerate(values) if own == value] for value in distinct}
    numbers = np.array(values, dtype=float)
    parts = np.array_split(np.argsort(numbers, kind="stable"), BINS)
    return {float(f"{numbers[part].mean():.4g}"): part.tolist() for part in parts}


@dataclass(frozen=True)
class Place:
    """A whole configuration in the cost space: objective, milliseconds, tokens; `front` if none beats it in all."""

    result: Result
    value: float
    ms: float
    tokens: float
    front: bool = False


def varied(result: Result) -> str:
    """Describe what the search varied in a configuration."""
    parts = [f"{name}={value}" for name, value in result.candidate.varied.items()]
    lacks = [f"without {edge}" for edge in result.candidate.without]
    return ", ".join([*parts, *lacks]) or "as the file's base"


def front(results: Sequence[Result], metric: str, timed: bool) -> list[Place]:
    """Whole configurations with their costs; none beats those on the front in one and equals them in the rest.

    Milliseconds are the p95 of single calls where it was measured, else the batch's time per question. Tokens of a
    question are what the reader would be given, and what the strategy's own model read and wrote.
    """
    places = []
    for result in results:
        records = list(result.records.values())
        each = [1000 * record.seconds / max(1, len(record.questions)) for record in records]
        ms = result.cost("latency_ms_p95") if timed else sum(each) / len(each)
        context = result.cost("context_tokens")
        own = [record.costs.get("tokens", 0.0) / max(1, len(record.questions)) for record in records]
        if ms is not None and context is not None:
            places.append(Place(result, result.mean(metric), ms, context + sum(own) / len(own)))
    keys = [(rank_key(metric, place.value), place.ms, place.tokens) for place in places]
    return [
        replace(place, front=not any(other != key and all(map(le, other, key)) for other in keys))
        for place, key in zip(places, keys, strict=True)
    ]


def pareto_figure(metric: str, places: Sequence[Place], timed: bool) -> Figure:
    """Quality over time; the size of a mark shows tokens, open marks are beaten in all three."""
    names = list(dict.fromkeys(place.result.candidate.strategy.name for place in places))
    max_tokens = max((place.tokens for place in places), default=1.0) or 1.0
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
                        "sizes": [round(6 + 10 * place.tokens / max_tokens, 1) for place in some],
                    },
                }
            )
    title = "p95 of one question, ms (log)" if timed else "time of one question in a batch, ms (log)"
    ticks = [base * 10**power for power in range(-3, 7) for base in (1, 2, 5)]
    axis = {"title": {"text": title}, "type": "log", "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}
    layout = {"xaxis": axis, "yaxis": _axis(metric), "showlegend": True}
    return {"id": "pareto", "traces": traces, "layout": layout}


def curves(metric: str, answers: Sequence[Response]) -> list[Figure]:
    """A response curve with its band for each of the max_tokens important parameters."""
    names = list(dict.fromkeys(answer.strategy for answer in answers))
    chosen = sorted(answers, key=lambda answer: -(answer.importance or 0.0))[:CURVES]
    return [
        _curve(metric, answer, names.index(answer.strategy), f"response-{place}")
        for place, answer in enumerate(answers)
        if answer in chosen
    ]


def _curve(metric: str, answer: Response, series: int, name: str) -> Figure:
    values = [point.value for point in answer.points]
    numeric = all(type(value) in {int, float} for value in values)
    x = values if numeric else list(map(str, values))
    mean, low, high = ([getattr(point, part) for point in answer.points] for part in ("mean", "low", "high"))
    meta = {"series": series, "hop_free": False}
    line: Figure = {"type": "scatter", "name": "mean", "mode": "lines+markers", "x": x, "y": mean, "meta": meta}
    line["hovertemplate"] = "%{x}: %{y:.3f}<extra>mean</extra>"
    best: Figure = {"type": "scatter", "name": "best", "mode": "markers", "x": x, "meta": {**meta, "hop_free": True}}
    best |= {"y": [point.best for point in answer.points], "hovertemplate": "%{x}: %{y:.3f}<extra>best</extra>"}
    traces = [line, best]
    axis: Figure = {"title": {"text": escape(answer.parameter)}, "type": "category"}
    if numeric:
        wide = min(values) > 0 and max(values) / min(values) >= 50  # type: ignore[operator]
        axis["type"] = "log" if wide else "-"
        band = {"type": "scatter", "mode": "lines", "name": "95%", "x": [*x, *x[::-1]], "y": [*high, *low[::-1]]}
        traces.insert(0, {**band, "meta": {**meta, "band": True}})
    else:
        line["mode"] = "markers"
        up, down = np.subtract(high, mean).tolist(), np.subtract(mean, low).tolist()
        line["error_y"] = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "width": 4}
    heading = f"{answer.strategy}: {answer.parameter}"
    return {"id": name, "title": heading, "traces": traces, "layout": {"xaxis": axis, "yaxis": _axis(metric)}}


def _axis(metric: str) -> Figure:
    """A metric's axis; up is always better: where less is better it is reversed and labelled so."""
    lower = sign_of(metric) < 0
    title = {"text": escape(metric) + (" (lower is better)" if lower else ""), "standoff": 14}
    return {"title": title, "tickformat": ".3f"} | ({"autorange": "reversed"} if lower else {})


@dataclass(frozen=True)
class SweepReport:
    """The content of the page; results are best first, `calls` are those to language models by purpose."""

    plan: SweepPlan
    results: Sequence[Result]
    reported: Result | None
    bias: Selection | None
    warnings: Sequence[str]
    best_yaml: str
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The objective."""
        return self.plan.content.objective.metric

    @property
    def whole(self) -> list[Result]:
        """The results on all questions."""
        return [result for result in self.results if result.dropped_at is None]


def write_sweep_report(report: SweepReport, path: Path) -> None:
    """Write the page atomically."""
    answers = responses(report.results, report.metric, report.plan.content.seed)
    timed = report.plan.content.timed
    places = front(report.whole, report.metric, timed)
    figures = [pareto_figure(report.metric, places, timed), *curves(report.metric, answers)]
    read = [(result, scores) for result in report.results if (scores := model_scores(result))]
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
        ragas=list(report.results[0].ragas),
        read=read[:SHOWN],
        columns=scored_columns(report.results),
        reader=readers_of(read[0][0]) if read else ("", ""),
    )
    write_atomically(path, page.encode())


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

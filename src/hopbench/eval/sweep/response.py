"""What each parameter does to the objective: its importance, and the response to each of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hopbench.eval.metrics import rank_key
from hopbench.eval.sweep.candidate import BUILD
from hopbench.eval.sweep.results import Result
from hopbench.eval.sweep.selection import Array, question_scores
from hopbench.eval.sweep.values import Scalar
from hopbench.retrieval.support.arithmetic import summable

RESAMPLES = 1_000
BINS = 6
FEWEST = 4


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

    @property
    def numeric(self) -> bool:
        """Whether its values lie on a line."""
        return all(type(point.value) in {int, float} for point in self.points)


def responses(results: Sequence[Result], metric: str, seed: int) -> list[Response]:
    """Every parameter that varies among whole results, most important first, strategy by strategy."""
    ordered: list[Response] = []
    by_strategy: dict[str, list[Result]] = {}
    for result in results:
        if result.dropped_at is None and result.candidate.of is None:
            by_strategy.setdefault(result.candidate.strategy.name, []).append(result)
    for strategy, own in by_strategy.items():
        values = effective_values(own)
        shares = importances(values, [result.mean(metric) for result in own], seed)
        draws = _draws(own, metric, seed)
        listed = [Response(strategy, n, _points(n, v, own, metric, draws), shares.get(n)) for n, v in values.items()]
        ordered += sorted(listed, key=lambda result: -(result.importance or 0.0))
    return ordered


def effective_values(results: Sequence[Result]) -> dict[str, list[Scalar]]:
    """Parameter → the value that each configuration has, for those that differ anywhere."""
    names = dict.fromkeys(name for result in results for name in result.candidate.varied)
    varied: dict[str, list[Scalar]] = {}
    for name in names:
        owners = [result.candidate.build if name.startswith(BUILD) else result.candidate.strategy for result in results]
        values = [getattr(owner, name.removeprefix(BUILD)) for owner in owners]
        if len(set(values)) > 1:
            varied[name] = ["default" if value is None else value for value in values]
    return varied


def importances(values: Mapping[str, Sequence[Scalar]], scores: Sequence[float], seed: int) -> dict[str, float]:
    """Each parameter's share of the variance by fANOVA (Hutter et al., ICML 2014), as Optuna computes it.

    Empty for too few configurations, or when they all score the same.
    """
    if len(scores) < FEWEST or np.ptp(scores) == 0 or not values:
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


def _points(
    name: str, values: Sequence[Scalar], results: Sequence[Result], metric: str, draws: Sequence[tuple[Array, Array]]
) -> list[Point]:
    points = []
    for value, members in _groups(values).items():
        means = [scores[members].mean(axis=0) for scores, _ in draws]
        resampled = np.mean([_resampled(mean, drawn) for mean, (_, drawn) in zip(means, draws, strict=True)], axis=0)
        low, high = np.quantile(resampled, [0.025, 0.975])
        best = min((results[place].mean(metric) for place in members), key=lambda value: rank_key(metric, value))
        mean = float(np.mean([by_question.mean() for by_question in means]))
        points.append(Point(value, mean, float(low), float(high), best, len(members)))
    return points


def _resampled(means: Array, drawn: Array) -> Array:
    """Means (r,) of resamples of the questions' means (n,), drawn (r, n) times: the same on every processor."""
    size = len(means)
    return np.asarray(drawn @ summable(means, size) / size)


def _groups(values: Sequence[Scalar]) -> dict[Scalar, list[int]]:
    """Value → the configurations that have it, in order; many numbers are put into bins of equal size."""
    distinct = _sorted(values)
    if len(distinct) <= 2 * BINS or not all(type(value) in {int, float} for value in distinct):
        return {value: [place for place, own in enumerate(values) if own == value] for value in distinct}
    numbers = np.array(values, dtype=float)
    parts = np.array_split(np.argsort(numbers, kind="stable"), BINS)
    return {float(f"{numbers[part].mean():.4g}"): part.tolist() for part in parts}

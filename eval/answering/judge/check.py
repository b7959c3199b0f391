"""Does the compact profile judge like the full one? Agreement on the same samples, and what each of them took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from hopbench.eval.answering.judge.sample import Sample
from hopbench.eval.answering.judge.schedule import Judging, jobs_of
from hopbench.eval.answering.judge.store import Judgement

RESAMPLES = 2_000
FEWEST = 5  # samples for a rank correlation: chance ranks five alike in 1 of 120 cases, three in 1 of 6
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimated:
    """A value with its 95% bootstrap interval over samples; None where too few samples tell."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a profile took for a metric on all samples, and how many of them got no score."""

    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    failures: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """A metric in both profiles over the `samples` that both scored.

    `spearman` is None where a profile gave one score to all; of several metrics it is the mean of the `ranked` ones
    that have it. `difference` is the mean absolute one, 0..1.
    """

    metric: str
    samples: int
    ranked: int
    spearman: Estimated
    difference: Estimated
    full: Taken
    compact: Taken

    def plain(self) -> dict[str, object]:
        """The agreement as plain values, with the ratios full : compact."""
        ratios = {
            "prompt_tokens_ratio": _ratio(self.full.tokens_in, self.compact.tokens_in),
            "calls_ratio": _ratio(self.full.calls, self.compact.calls),
            "seconds_ratio": _ratio(self.full.seconds, self.compact.seconds),
        }
        return {**asdict(self), **ratios}


def check(
    full: Judging, compact: Judging, samples: Sequence[Sample], metrics: Sequence[str], seed: int = 0
) -> list[Agreement]:
    """Judge the samples in both profiles and compare; the last entry is of all metrics together."""
    scores: dict[str, tuple[FloatArray, FloatArray]] = {}
    taken: dict[str, tuple[Taken, Taken]] = {}
    for metric in metrics:
        one, other = (_judged(judging, samples, metric) for judging in (full, compact))
        scores[metric] = _values(one, samples), _values(other, samples)
        taken[metric] = _taken(one), _taken(other)
    found = [_agreement(metric, {metric: scores[metric]}, taken[metric], seed) for metric in metrics]
    sums = _sum([pair[0] for pair in taken.values()]), _sum([pair[1] for pair in taken.values()])
    return [*found, _agreement("all", scores, sums, seed)]


def _judged(judging: Judging, samples: Sequence[Sample], metric: str) -> list[Judgement]:
    jobs = jobs_of(samples, [metric], repeats=1)
    found = judging.judge(jobs)
    return [found[judging.key_of(job)] for job in jobs]


def _values(found: Sequence[Judgement], samples: Sequence[Sample]) -> FloatArray:
    """A score per sample, NaN where there is none."""
    scored = {one.question_id: one.value for one in found if one.value is not None}
    return np.array([scored.get(sample.question_id, np.nan) for sample in samples], dtype=float)


def _taken(found: Sequence[Judgement]) -> Taken:
    sums = {name: sum(getattr(one, name) for one in found) for name in ("calls", "tokens_in", "tokens_out")}
    seconds = round(sum(one.seconds for one in found), 3)
    return Taken(**sums, seconds=seconds, failures=sum(one.failure is not None for one in found))


def _sum(parts: Sequence[Taken]) -> Taken:
    return Taken(*(sum(getattr(one, name) for one in parts) for name in Taken.__dataclass_fields__))


def _agreement(
    metric: str, scores: Mapping[str, tuple[FloatArray, FloatArray]], taken: tuple[Taken, Taken], seed: int
) -> Agreement:
    """Over several metrics: the mean of their values, samples drawn together."""

    def mean_of(
        statistic: Callable[[FloatArray, FloatArray], float | None], rows: npt.NDArray[np.int_]
    ) -> float | None:
        values = [statistic(one[rows], other[rows]) for one, other in scores.values()]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    most = max(len(one) for one, _ in scores.values())
    both = [int((~np.isnan(one + other)).sum()) for one, other in scores.values()]
    return Agreement(
        metric,
        sum(both),
        sum(spearman(one, other) is not None for one, other in scores.values()),
        _bootstrapped(lambda rows: mean_of(spearman, rows), most, seed),
        _bootstrapped(lambda rows: mean_of(difference, rows), most, seed),
        *taken,
    )


def _bootstrapped(statistic: Callable[[npt.NDArray[np.int_]], float | None], count: int, seed: int) -> Estimated:
    if count == 0:
        return Estimated(None)
    value = statistic(np.arange(count))
    if value is None:
        return Estimated(None)
    draw = np.random.default_rng(seed)
    drawn = [statistic(draw.integers(0, count, count)) for _ in range(RESAMPLES)]
    low, high = np.percentile([one for one in drawn if one is not None], [2.5, 97.5])
    return Estimated(*(round(float(one), 6) for one in (value, low, high)))


def spearman(one: FloatArray, other: FloatArray) -> float | None:
    """Spearman's rank correlation of the pairs without NaN; None for few pairs, or where one side does not vary."""
    from scipy.stats import rankdata

    used = ~np.isnan(one + other)
    first, second = rankdata(one[used]), rankdata(other[used])
    if used.sum() < FEWEST or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def difference(one: FloatArray, other: FloatArray) -> float | None:
    """The mean absolute difference of the pairs without NaN."""
    used = ~np.isnan(one + other)
    return float(np.abs(one[used] - other[used]).mean()) if used.any() else None


def _ratio(one: float, other: float) -> float | None:
    return round(one / other, 3) if other else None

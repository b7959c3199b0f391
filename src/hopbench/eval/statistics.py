"""Statistics of paired comparisons: seeded, validated first, independent of the order of the questions.

Values are sorted before anything is drawn, so a permutation of the questions gives the same result to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy  # its submodules load on first use: scipy.stats takes 0.5 s

from hopbench.retrieval.support.arithmetic import summable
from hopbench.retrieval.support.errors import ParameterError

FloatArray: TypeAlias = npt.NDArray[np.float64]
Seed: TypeAlias = int | np.random.Generator

RESAMPLES = 9_999
ALPHA = 0.05
POWER = 0.8
DECIMALS = 12
"""Differences are rounded to this, so that 2/3 − 1/3 and 1/3 − 0 are the same difference."""
FEW_VALUES = 32
CELLS = 1 << 18
"""Cells drawn at once: 2 MiB of doubles stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean."""

    low: float
    high: float


def limit(value: float, digits: int = 3) -> str:
    """Format an interval's limit with its sign; one that rounds to 0 is shown with its side of 0: `>0.000`."""
    shown = f"{value:+.{digits}f}"
    if float(shown) != 0:
        return shown
    return ("" if value == 0 else ">" if value > 0 else "<") + f"{0:.{digits}f}"


def mean_ci(
    values: Sequence[float] | FloatArray, seed: Seed = 0, *, resamples: int = RESAMPLES, alpha: float = ALPHA
) -> Interval | None:
    """Compute the percentile bootstrap interval of the mean of `values` ((n,), NaN left out); None for fewer than two.

    Resamples questions with replacement (Efron and Tibshirani, 1993, chapter 13); `scipy.stats.bootstrap`.
    """
    intervals = mean_cis(values, [alpha], seed, resamples=resamples)
    return intervals[0] if intervals else None


def mean_cis(
    values: Sequence[float] | FloatArray, alphas: Sequence[float], seed: Seed = 0, *, resamples: int = RESAMPLES
) -> list[Interval]:
    """Compute `mean_ci` at several levels from the same resamples; none for fewer than two values."""
    for alpha in alphas:
        check_settings(resamples, alpha)
    known = clean(values)
    if len(known) < 2:
        return []
    means = _bootstrap_means(known, resamples, np.random.default_rng(seed))
    pairs = [np.quantile(means, [alpha / 2, 1 - alpha / 2]) for alpha in alphas]
    return [Interval(float(low), float(high)) for low, high in pairs]


def compatible(interval: Interval, difference: float, rejected: bool) -> Interval:
    """Cut or widen the interval so that it excludes 0 exactly where Holm's test `rejected` "no difference".

    `interval` is Bonferroni's, at 1 − alpha / m, so that all m of a family hold together. Holm's test is sharper in its
    later steps: what it rejects there has, beside its sign, no bound but 0 itself (Strassburger and Bretz, Statistics
    in Medicine 2008), which is excluded by the last decimal. Where bootstrap and permutation disagree the
    other way round, the interval is widened to 0. It always holds the difference.
    """
    low, high = min(interval.low, difference), max(interval.high, difference)
    if not rejected:
        return Interval(min(low, 0.0), max(high, 0.0))
    step = 10.0**-DECIMALS
    return Interval(max(low, step), high) if difference > 0 else Interval(low, min(high, -step))


def _bootstrap_means(values: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Draw the means of `resamples` samples with replacement.

    How often each distinct value is drawn is multinomial; with few distinct values (yes/no metrics, recall) drawing
    those counts is the same experiment 10 times faster.
    """
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    if len(distinct) <= FEW_VALUES:
        drawn = rng.multinomial(n, counts / n, size=resamples)
        return np.asarray(drawn @ summable(distinct, n) / n, dtype=float)
    batch = max(1, CELLS // n)
    result = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=resamples, batch=batch, vectorized=True, method="percentile", rng=rng
    )
    return np.asarray(result.bootstrap_distribution, dtype=float)


def sign_flip_p(differences: Sequence[float] | FloatArray, seed: Seed = 0, *, resamples: int = RESAMPLES) -> float:
    """Compute the two-sided p of a zero mean difference: under the null each pair's sign is a fair coin (Fisher, 1935).

    Pairs without difference cannot change the statistic and are dropped. With equal magnitudes (yes/no metrics) the
    test is exactly the binomial sign test, `scipy.stats.binomtest`; with few pairs all 2^m flips are enumerated by
    `scipy.stats.permutation_test`; else `resamples` random flips are drawn, p = (1 + as extreme) / (1 + drawn)
    (Phipson and Smyth, 2010), here rather than in scipy because signs as bits are 30 times faster.
    """
    check_settings(resamples, ALPHA)
    d = clean(differences)
    d = d[d != 0]
    if len(d) == 0:
        return 1.0
    if np.ptp(np.abs(d)) == 0:
        return float(scipy.stats.binomtest(int((d > 0).sum()), len(d)).pvalue)
    if 2 ** len(d) <= resamples:  # as whole numbers: there is no float of 2¹⁰²⁴
        exact = scipy.stats.permutation_test(
            (d,), np.mean, permutation_type="samples", n_resamples=resamples, vectorized=True
        )
        return float(exact.pvalue)
    return _random_flips_p(d, resamples, np.random.default_rng(seed))


def _random_flips_p(d: FloatArray, resamples: int, rng: np.random.Generator) -> float:
    d = summable(d, 2 * len(d))  # so that the sums below do not depend on the processor
    magnitude = np.sort(np.abs(d))
    total = magnitude.sum()
    observed = abs(d.sum()) - 1e-9 * total  # what is as extreme but for rounding counts
    extreme = 0
    block = max(1, CELLS // len(d))
    for size in (min(block, resamples - start) for start in range(0, resamples, block)):
        bits = np.frombuffer(rng.bytes(size * ((len(d) + 7) // 8)), dtype=np.uint8).reshape(size, -1)
        positive = np.unpackbits(bits, axis=1, count=len(d)).astype(float)
        extreme += int((np.abs(2 * (positive @ magnitude) - total) >= observed).sum())
    return (extreme + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values by Holm's method, in the given order: max over j ≤ i of (m − j)·p₍ⱼ₎, at most 1 (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [float(p) for p in adjusted]


def minimum_detectable(differences: Sequence[float] | FloatArray, *, alpha: float = ALPHA) -> float | None:
    """The true mean difference that n such pairs would show four times in five: (z₁₋α/₂ + z_power) · sd / √n.

    sd is the sample deviation of the n paired differences (ddof 1); two-sided, before Holm (Card et al., EMNLP 2020;
    Miller 2024, arXiv 2411.00640). Example: sd 0.38, n 500 → (1.960 + 0.842) · 0.38 / 22.36 = 0.0476. None where the
    deviation is unknown: fewer than two pairs, or no pair that differs.
    """
    check_settings(1, alpha)
    d = clean(differences)
    if len(d) < 2 or np.ptp(d) == 0:
        return None
    z = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(POWER)
    return float(z * d.std(ddof=1) / np.sqrt(len(d)))


TYPICAL_DEVIATION = 0.5


def detectable_difference(questions: int) -> float | None:
    """The true mean difference that so many questions would show four times in five, before any was answered.

    (z₁₋α/₂ + z_power) · 0.5 / √n: two labels whose all_gold@10 differs on a quarter of the questions have paired
    differences of standard deviation 0.5. Example: 50 questions → 2.802 · 0.5 / 7.071 = 0.198. None below 2 questions.
    """
    if questions < 2:
        return None
    z = NormalDist().inv_cdf(1 - ALPHA / 2) + NormalDist().inv_cdf(POWER)
    return float(z * TYPICAL_DEVIATION / np.sqrt(questions))


def clean(values: Sequence[float] | FloatArray) -> FloatArray:
    """Return the known values, rounded and sorted; refuse anything but one finite number per question."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or np.isinf(array).any():
        raise ParameterError(f"expected one finite number per question, got shape {array.shape} or infinite values")
    return np.sort(np.round(array[~np.isnan(array)], DECIMALS))


def check_settings(resamples: int, alpha: float) -> None:
    """Raise ParameterError for settings outside their bounds."""
    if resamples < 1:
        raise ParameterError(f"resamples is {resamples}; choose at least 1, and {RESAMPLES} for results to publish")
    if not 0 < alpha < 1:
        raise ParameterError(f"alpha is {alpha}; choose a value between 0 and 1, such as {ALPHA}")

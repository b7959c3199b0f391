"""The statistics against hand-derived values, exact enumeration and scipy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval import statistics
from hopbench.eval.statistics import Interval, holm, mean_ci, minimum_detectable, sign_flip_p
from hopbench.retrieval.support.errors import ParameterError


def enumerated_p(differences: list[float]) -> float:
    """The share of all 2^m sign patterns whose sum is at least as extreme."""
    observed = abs(sum(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in
            product((1, -1), repeat=len(differences))]  # fmt: skip
    return sum(x >= observed - 1e-9 for x in sums) / len(sums)


def test_sign_test_by_hand() -> None:
    # 4 wins, 0 losses: 2 of the 16 patterns are as extreme; ties change nothing
    assert sign_flip_p([1, 1, 1, 1]) == pytest.approx(2 / 16)
    assert sign_flip_p([1, 1, 1, 1, 0, 0, 0, 0]) == pytest.approx(2 / 16)
    # 3 wins, 1 loss: patterns with ≥ 3 or ≤ 1 plus signs: 2·(1 + 4) = 10 of 16
    assert sign_flip_p([1, 1, -1, 1]) == pytest.approx(10 / 16)
    assert sign_flip_p([0.5, 0.5, -0.5, 0.5]) == pytest.approx(10 / 16)
    assert sign_flip_p([0.0, 0.0]) == 1.0
    assert sign_flip_p([]) == 1.0


def test_unequal_magnitudes_by_hand() -> None:
    # |±.5 ± 1| ≥ 1.5 in 2 of 4 patterns
    assert sign_flip_p([0.5, 1.0]) == pytest.approx(0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=9))
def test_few_pairs_are_enumerated(differences: list[float]) -> None:
    assert sign_flip_p(differences) == pytest.approx(enumerated_p(differences))


def test_thirds_of_recall_count_as_the_same_difference() -> None:
    # 1 − 2/3 and 1/3 − 0 differ in the last bit; unrounded they would not be the binomial case
    assert sign_flip_p([1 - 2 / 3, 1 / 3, 1 / 3, 2 / 3 - 1 / 3]) == pytest.approx(2 / 16)


def test_random_flips_agree_with_the_exact_binomial() -> None:
    d = np.array([1.0] * 40 + [-1.0] * 22)
    exact = sign_flip_p(d)
    drawn = statistics._random_flips_p(d, 20_000, np.random.default_rng(3))
    assert exact == pytest.approx(scipy.stats.binomtest(40, 62).pvalue)
    # binomial error of a share p over 20,000 draws
    assert abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000) + 1 / 20_000


def test_random_flips_agree_with_scipy() -> None:
    d = np.random.default_rng(8).normal(0.2, 1, 60)
    ours = sign_flip_p(d, seed=1)
    scipys = scipy.stats.permutation_test(
        (d,), np.mean, permutation_type="samples", vectorized=True, n_resamples=9_999, rng=np.random.default_rng(2)
    ).pvalue
    assert abs(ours - scipys) < 4 * np.sqrt(2 * scipys * (1 - scipys) / 9_999)


@pytest.mark.parametrize("pairs", [1024, 7405, 10_000])
def test_thousands_of_pairs_that_differ(pairs: int) -> None:
    # 2^1024 flips are more than a float can say; HotpotQA's development set has 7,405 questions
    d = np.tile([-1.0, 1.0, -0.5, 0.5], pairs // 4 + 1)[:pairs]
    assert sign_flip_p(d, resamples=199) > 0.2
    assert sign_flip_p(d + 0.25, resamples=199) == 1 / 200


def test_random_p_is_never_zero() -> None:
    assert sign_flip_p(np.linspace(1, 2, 40), resamples=999) == 1 / 1000


def test_holm_by_hand() -> None:
    # sorted .01 .03 .04 → ×3, ×2, ×1 = .03 .06 .04 → running maximum .03 .06 .06
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_only_raises_and_keeps_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(a >= b for a, b in zip(adjusted, p, strict=True))
    assert [adjusted[i] for i in np.argsort(p, kind="stable")] == sorted(adjusted)
    assert max(adjusted) <= 1


def test_minimum_detectable_by_hand() -> None:
    # 50 wins, 50 ties: mean .5, sd √(100·.25/99) = .502519; (1.959964 + .841621) · .502519 / 10 = .140785
    assert minimum_detectable([1.0] * 50 + [0.0] * 50) == pytest.approx(0.140785, abs=1e-6)
    assert minimum_detectable([0.0] * 50) is None
    assert minimum_detectable([1.0]) is None


def test_minimum_detectable_is_detected_four_times_in_five() -> None:
    rng = np.random.default_rng(4)
    true = minimum_detectable(rng.normal(0, 1, 4000))
    assert true is not None
    samples = rng.normal(true, 1, (1000, 4000))
    z = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / np.sqrt(4000))
    assert 0.76 < (np.abs(z) > 1.959964).mean() < 0.84


@pytest.mark.parametrize("kind", ["few values", "many values"])
def test_interval_agrees_with_scipys_bootstrap(kind: str) -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(0, 2, 300).astype(float) if kind == "few values" else rng.random(300)
    ours = mean_ci(values)
    scipys = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=9_999, batch=800, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    assert ours is not None
    width = scipys.high - scipys.low
    assert abs(ours.low - scipys.low) < 0.05 * width
    assert abs(ours.high - scipys.high) < 0.05 * width


def test_the_two_ways_to_resample_are_one_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([0.0] * 30 + [0.5] * 50 + [1.0] * 20)
    counted = np.sort(statistics._bootstrap_means(values, 5_000, np.random.default_rng(0)))
    monkeypatch.setattr(statistics, "FEW_VALUES", 0)
    drawn = np.sort(statistics._bootstrap_means(values, 5_000, np.random.default_rng(0)))
    assert scipy.stats.ks_2samp(counted, drawn).pvalue > 0.01
    assert np.abs(np.quantile(counted, [0.025, 0.975]) - np.quantile(drawn, [0.025, 0.975])).max() < 0.01


def test_interval_edges() -> None:
    assert mean_ci([]) is None
    assert mean_ci([1.0]) is None
    assert mean_ci([1.0, float("nan")]) is None
    assert mean_ci([1.0, 1.0, 1.0]) == Interval(1.0, 1.0)
    assert mean_ci([0.0, 1.0, float("nan"), 1.0]) == mean_ci([0.0, 1.0, 1.0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=60), st.integers(0, 99))
def test_order_does_not_matter(values: list[float], seed: int) -> None:
    shuffled = list(np.random.default_rng(seed).permutation(values))
    assert mean_ci(values, seed, resamples=200) == mean_ci(shuffled, seed, resamples=200)
    assert sign_flip_p(values, seed, resamples=200) == sign_flip_p(shuffled, seed, resamples=200)
    assert minimum_detectable(values) == minimum_detectable(shuffled)


def test_seeds_and_generators() -> None:
    values = np.random.default_rng(0).random(50)
    assert mean_ci(values, 1) == mean_ci(values, np.random.default_rng(1))
    assert mean_ci(values, 1) != mean_ci(values, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_ci([], resamples=0),
        lambda: mean_ci([], alpha=1.0),
        lambda: sign_flip_p([], resamples=0),
        lambda: mean_ci([float("inf")]),
        lambda: mean_ci(np.zeros((2, 2))),
        lambda: minimum_detectable([], alpha=0.0),
    ],
)
def test_settings_are_checked_before_any_short_cut(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()

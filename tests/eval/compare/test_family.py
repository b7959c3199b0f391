"""A verdict and the interval beside it: they never contradict each other, nor the corrected p."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval.compare import Interval, compare, holm, limit
from hopbench.eval.compare.statistics import compatible, mean_ci, mean_cis

METRIC = "all_gold@10"


def rows(values: list[float] | np.ndarray) -> pd.DataFrame:
    index = pd.Index([f"q{i:04}" for i in range(len(values))], name="question_id", dtype=object)
    return pd.DataFrame({METRIC: np.asarray(values, dtype=float), "failure": None}, index=index)


def excludes_zero(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


@st.composite
def families(draw: st.DrawFn) -> dict[str, pd.DataFrame]:
    """Up to nine labels on up to forty questions, some far ahead, some equal, of yes/no or of graded scores."""
    count, labels = draw(st.integers(2, 40)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    graded = draw(st.booleans())
    skills = draw(st.lists(st.floats(0, 1), min_size=labels, max_size=labels))
    drawn = {f"l{place}": rng.random(count) < skill for place, skill in enumerate(skills)}
    scale = rng.random(count) if graded else np.ones(count)
    return {"base": rows((rng.random(count) < 0.5) * scale)} | {name: rows(hit * scale) for name, hit in drawn.items()}


@settings(max_examples=60, deadline=None)
@given(families())
def test_verdict_interval_and_corrected_p_say_the_same(frames: dict[str, pd.DataFrame]) -> None:
    for pair in compare(frames, "base", resamples=299).pairs:
        assert pair.ci_family is not None
        assert pair.difference is not None
        found = pair.verdict != "not distinguishable"
        assert found == excludes_zero(pair.ci_family) == (pair.p_holm < 0.05)
        assert pair.ci_family.low <= pair.difference <= pair.ci_family.high
        if found:
            assert (pair.verdict == "better") == (pair.ci_family.low > 0)


def test_what_holm_takes_away_takes_the_interval_across_zero() -> None:
    # 6 of 40 won: p = 2/2^6 = .031 alone, .063 for two: alone the interval is above 0, beside the verdict not.
    frames = {"base": rows(np.zeros(40)), "x": rows(np.arange(40) < 6), "y": rows(np.arange(40) < 6)}
    for pair in compare(frames, "base").pairs:
        assert pair.ci is not None
        assert pair.ci_family is not None
        assert (pair.verdict, excludes_zero(pair.ci)) == ("not distinguishable", True)
        assert not excludes_zero(pair.ci_family)


def test_the_family_s_interval_is_bonferroni_s() -> None:
    rng = np.random.default_rng(0)
    frames = {name: rows(rng.random(200) < 0.5) for name in ("base", "a", "b", "c", "d")}
    alone = compare({name: frames[name] for name in ("base", "a")}, "base").pairs[0]
    together = compare(frames, "base").pairs[0]
    difference = (frames["a"][METRIC] - frames["base"][METRIC]).to_numpy()
    seed = int(np.random.default_rng(0).integers(2**63))
    assert mean_ci(difference, seed) == alone.ci == alone.ci_family == together.ci
    assert mean_ci(difference, seed, alpha=0.05 / 4) == together.ci_family  # it holds 0 and is left as it is
    assert mean_cis(difference, [0.05, 0.0125], seed) == [together.ci, together.ci_family]


@pytest.mark.parametrize(("families", "least"), [(40, 33), pytest.param(400, 366, marks=pytest.mark.soak)])
def test_intervals_of_a_family_cover_all_true_differences_together(families: int, least: int) -> None:
    # 8 labels that are equal to the baseline but for fair coins: in 95% of the families all eight intervals hold the
    # true difference 0 (`least` is 3.2 standard deviations below it).
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(families):
        frames = {f"l{i}": rows(rng.random(150) < 0.5) for i in range(8)} | {"base": rows(rng.random(150) < 0.5)}
        pairs = compare(frames, "base", seed=seed, resamples=1_999).pairs
        covered += not any(pair.ci_family and excludes_zero(pair.ci_family) for pair in pairs)
    assert covered >= least


@pytest.mark.parametrize(
    ("interval", "difference", "rejected", "expected"),
    [
        (Interval(-0.01, 0.2), 0.1, True, Interval(1e-12, 0.2)),  # Holm's later step is sharper than Bonferroni's
        (Interval(-0.2, 0.01), -0.1, True, Interval(-0.2, -1e-12)),
        (Interval(0.01, 0.2), 0.1, False, Interval(0.0, 0.2)),  # the bootstrap is sharper than the permutation test
        (Interval(0.01, 0.2), 0.1, True, Interval(0.01, 0.2)),
        (Interval(-0.01, 0.2), 0.1, False, Interval(-0.01, 0.2)),
        (Interval(0.05, 0.08), 0.1, True, Interval(0.05, 0.1)),
    ],
)
def test_an_interval_is_made_to_fit_the_test(
    interval: Interval, difference: float, rejected: bool, expected: Interval
) -> None:
    assert expected == compatible(interval, difference, rejected)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0404, "+0.040"), (-0.2, "-0.200"), (0.0, "0.000"), (1e-12, ">0.000"), (-0.0004, "<0.000")]
)
def test_a_limit_says_on_which_side_of_zero_it_lies(value: float, text: str) -> None:
    assert text == limit(value)


def test_holm_is_unchanged() -> None:
    assert [0.03, 0.06, 0.06] == pytest.approx(holm([0.01, 0.04, 0.03]))

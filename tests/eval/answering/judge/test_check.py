"""Agreement of two profiles: rank correlation, mean difference, intervals over the samples, what it took."""

from __future__ import annotations

import numpy as np
import pytest

from hopbench.eval.answering.judge.outcome import Cost, _agreement, difference, spearman

NOTHING = Cost(0, 0, 0, 0.0, 0)


def values(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=float)


def test_spearman_is_of_ranks_with_ties_in_the_middle() -> None:
    # Ranks 1, 2, 3, 4, 5 against 1.5, 1.5, 3, 4, 5: products of deviations 9.5, their squares 10 and 9.5: .9747.
    together = spearman(values(0.1, 0.2, 0.3, 0.9, 1), values(0, 0, 0.5, 1, 1.5))
    assert 9.5 / (10 * 9.5) ** 0.5 == pytest.approx(together)


def test_where_one_side_does_not_vary_there_is_no_correlation() -> None:
    assert spearman(values(1, 1, 1, 1), values(0, 0.5, 1, 1)) is None
    assert spearman(values(1, 0, 2, 3), values(1, 0, 2, 3)) is None  # four samples are alike by chance too often


def test_only_samples_that_both_scored_count() -> None:
    full, compact = values(1, 0, np.nan, 0.5), values(0.5, 0, 1, np.nan)

    assert 0.25 == difference(full, compact)  # (.5 + 0) / 2
    assert 2 == _agreement("m", {"m": (full, compact)}, (NOTHING, NOTHING), 0).samples


def test_intervals_are_seeded_and_hold_the_value() -> None:
    draw = np.random.default_rng(1)
    full = draw.random(40)
    scores = {"m": (full, np.clip(full + draw.normal(0, 0.1, 40), 0, 1))}

    one, again, other = (_agreement("m", scores, (NOTHING, NOTHING), seed) for seed in (0, 0, 1))

    assert one == again
    assert one.spearman != other.spearman
    for found in (one.spearman, one.difference):
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low < found.value < found.high
    assert 0.8 < (one.spearman.value or 0) < 1


def test_all_metrics_together_are_the_mean_of_each() -> None:
    scores = {"a": (values(1, 0, 1, 0, 1), values(1, 0, 1, 0, 1)), "b": (np.ones(5), np.zeros(5))}

    together = _agreement("all", scores, (NOTHING, NOTHING), 0)

    assert (0.5, 1.0, 10) == (together.difference.value, together.spearman.value, together.samples)
    assert 1 == together.ranked  # b has no ranks


def test_ratios_are_full_to_compact() -> None:
    taken = Cost(10, 4000, 100, 60.0, 0), Cost(4, 500, 50, 12.0, 1)

    plain = _agreement("m", {"m": (values(1, 0, 1), values(1, 0, 1))}, taken, 0).plain()

    assert (8.0, 2.5, 5.0) == tuple(plain[f"{name}_ratio"] for name in ("prompt_tokens", "calls", "seconds"))
    assert {"calls": 4, "tokens_in": 500, "tokens_out": 50, "seconds": 12.0, "failures": 1} == plain["compact"]

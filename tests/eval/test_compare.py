"""Comparisons of labels: pairing, verdicts with their intervals, and error rates on data whose truth is known."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval.compare import best_baseline, compare
from hopbench.eval.statistics import (
    Interval,
    compatible,
    holm,
    limit,
    mean_ci,
    mean_cis,
    minimum_detectable,
    sign_flip_p,
)
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError

METRIC = "all_gold@10"


def rows(values: Sequence[float] | npt.NDArray[np.float64], metric: str = METRIC) -> pd.DataFrame:
    """Rows of questions q0000…; NaN stands for a failed question."""
    index = pd.Index([f"q{i:04}" for i in range(len(values))], name="question_id", dtype=object)
    failures = ["broke" if np.isnan(v) else None for v in values]
    frame = pd.DataFrame({metric: np.asarray(values, dtype=float)}, index=index)
    frame["failure"] = pd.Series(failures, index=index, dtype=object)
    return frame


NAN = float("nan")


def test_pairs_by_question_both_answered() -> None:
    # q0 win, q1 loss, q2 tie, q3 and q4 answered by one side only, q5 win
    got = compare({"new": rows([1, 0, 1, NAN, 1, 1]), "base": rows([0, 1, 1, 1, NAN, 0])}, "base").pairs[0]
    assert (got.label, got.baseline, got.n) == ("new", "base", 4)
    assert got.difference == pytest.approx((1 - 1 + 0 + 1) / 4)
    assert (got.wins, got.losses, got.ties) == (("q0000", "q0005"), ("q0001",), 1)
    assert got.p == 1.0  # 2 of 3: every pattern is at least as extreme
    assert got.verdict == "not distinguishable"
    assert got.incomplete  # 1 of 6 failed


@pytest.mark.parametrize("values", [[1.0, 0.0, 1.0], [0.0] * 40, [1.0], [NAN, NAN]])
def test_equal_labels_have_p_1(values: list[float]) -> None:
    """statsmodels 0.15.0 gives a corrected McNemar p of 0 for them, and scipy 1.17.1 raises where nothing differs."""
    (pair,) = compare({"new": rows(values), "base": rows(values)}, "base").pairs

    assert (1.0, 1.0, 0) == (pair.p, pair.p_holm, len(pair.wins) + len(pair.losses))
    assert pair.verdict == "not distinguishable"


def test_pairing_ignores_the_order_of_rows() -> None:
    new, base = rows([1, 0, 1, 1]), rows([0, 0, 1, 0])
    assert compare({"new": new.iloc[::-1], "base": base}, "base") == compare({"new": new, "base": base}, "base")


def test_the_result_depends_on_no_order() -> None:
    rng = np.random.default_rng(0)
    frames = {f"l{i}": rows(rng.random(80), "nDCG@10") for i in range(4)}
    types = {f"q{i:04}": "ab"[i % 2] for i in range(80)}
    got = compare(frames, "l2", "nDCG@10", types=types, resamples=500)
    turned = {label: frame.sample(frac=1, random_state=1) for label, frame in reversed(frames.items())}
    turned_types = dict(reversed(types.items()))
    assert compare(turned, "l2", "nDCG@10", types=turned_types, resamples=500) == got
    assert [p.label for p in got.pairs] == ["l0", "l1", "l3"]


def test_seeds_decide_and_generators_are_taken() -> None:
    rng = np.random.default_rng(0)
    frames = {"a": rows(rng.random(60), "MRR"), "b": rows(rng.random(60), "MRR")}
    first = compare(frames, "b", "MRR", seed=1, resamples=300)
    assert first == compare(frames, "b", "MRR", seed=np.random.default_rng(1), resamples=300)
    assert first.pairs[0].ci != compare(frames, "b", "MRR", seed=2, resamples=300).pairs[0].ci


def test_pair_values_are_those_of_the_public_statistics() -> None:
    a, b = np.array([1.0, 1, 1, 0, 1, 1, 0, 1]), np.array([0.0, 1, 0, 0, 0, 1, 1, 0])
    pair = compare({"a": rows(a), "b": rows(b)}, "b").pairs[0]
    # 4 wins, 1 loss of 5: patterns with ≥ 4 or ≤ 1 plus signs: 2·(1 + 5) = 12 of 32
    assert pair.p == pytest.approx(12 / 32) == sign_flip_p(a - b)
    assert pair.minimum_detectable == minimum_detectable(a - b)
    assert pair.ci is not None
    assert pair.ci.low <= 3 / 8 <= pair.ci.high


def test_holm_binds_the_whole_family() -> None:
    base = np.zeros(12)
    gains = {"g6": 6, "g8": 8, "g10": 10}  # exact p: 2/2^g
    frames = {name: rows(np.arange(12) < g) for name, g in gains.items()} | {"base": rows(base)}
    adjusted = {p.label: p.p_holm for p in compare(frames, "base").pairs}
    assert adjusted == pytest.approx({"g10": 3 * 2 / 2**10, "g8": 2 * 2 / 2**8, "g6": 2 / 2**6})
    alone = compare({"g6": frames["g6"], "base": frames["base"]}, "base").pairs[0]
    assert (alone.p, alone.verdict) == (pytest.approx(2 / 64), "better")


def test_holm_can_take_a_verdict_away() -> None:
    one = rows(np.arange(40) < 6)  # p = 2/64 = .031: alone below .05, times 2 above
    frames = {"base": rows(np.zeros(40)), "x": one, "y": one}
    assert {p.verdict for p in compare(frames, "base").pairs} == {"not distinguishable"}


def test_worse_and_metrics_where_lower_is_better() -> None:
    low, high = np.zeros(30), np.ones(30)
    assert compare({"a": rows(low), "b": rows(high)}, "b").pairs[0].verdict == "worse"
    share = compare({"a": rows(low, "reach_share@2"), "b": rows(high, "reach_share@2")}, "b", "reach_share@2").pairs[0]
    assert (share.difference, share.verdict, len(share.wins), share.losses) == (-1.0, "better", 30, ())


def test_wins_are_listed_largest_first() -> None:
    pair = compare({"a": rows([0.2, 0.9, 0.1, 0], "MRR"), "b": rows([0, 0, 0.5, 0], "MRR")}, "b", "MRR").pairs[0]
    assert (pair.wins, pair.losses, pair.ties) == (("q0001", "q0000"), ("q0002",), 1)


def test_without_baseline_every_two_labels_are_compared() -> None:
    frames = {name: rows([0, 1, 1]) for name in "cab"}
    got = compare(frames)
    assert [(p.label, p.baseline) for p in got.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert got.pair("a", "c") is got.pairs[1]
    assert got.pair("c", "a") is None


def test_breakdown_by_type() -> None:
    types = {"q0000": "bridge", "q0001": "bridge", "q0002": "comparison", "q0003": "comparison"}
    by_type = compare({"a": rows([1, 1, 0, 1]), "b": rows([0, 1, 1, NAN])}, "b", types=types).pairs[0].by_type
    assert list(by_type) == ["bridge", "comparison"]
    bridge, comparison = by_type["bridge"], by_type["comparison"]
    assert (bridge.n, bridge.difference, bridge.wins, bridge.losses, bridge.ties) == (2, 0.5, 1, 0, 1)
    assert (comparison.n, comparison.difference, comparison.ci) == (1, -1.0, None)


def test_failures_over_five_percent_are_marked() -> None:
    values = np.ones(100)
    five, six = values.copy(), values.copy()
    five[:5] = six[:6] = NAN
    got = compare({"five": rows(five), "six": rows(six), "base": rows(values)}, "base")
    assert {label: c["incomplete"] for label, c in got.labels.items()} == {"five": False, "six": True, "base": False}
    assert {p.label: p.incomplete for p in got.pairs} == {"five": False, "six": True}
    assert got.labels["six"]["coverage"] == pytest.approx(0.94)


def test_a_missing_row_counts_as_a_failure() -> None:
    got = compare({"part": rows(np.ones(10)).iloc[:8], "base": rows(np.ones(10))}, "base")
    assert (got.labels["part"]["failures"], got.pairs[0].n, got.pairs[0].incomplete) == (2, 8, True)


def test_nothing_answered_by_both_is_no_verdict() -> None:
    pair = compare({"a": rows([1, NAN]), "b": rows([NAN, 1])}, "b").pairs[0]
    assert (pair.n, pair.difference, pair.ci, pair.p, pair.minimum_detectable) == (0, None, None, 1.0, None)
    assert pair.verdict == "not distinguishable"


def test_it_becomes_plain_json() -> None:
    got = compare({"a": rows([1, 1, 0]), "b": rows([0, 1, 1])}, "b", types={"q0000": "bridge"}).to_dict()
    assert json.loads(json.dumps(got))["labels"]["a"] == {
        "questions": 3, "failures": 0, "coverage": 1.0, "incomplete": False
    }  # fmt: skip


def test_best_baseline() -> None:
    scores = {"bm25": 0.7, "vector": 0.8, "pagerank": 0.9, "hybrid": 0.8}
    means = {name: {METRIC: value} for name, value in scores.items()}
    assert best_baseline(means) == "vector"  # pagerank uses the graph; hybrid ties and comes later
    assert best_baseline(dict(reversed(means.items()))) == "vector"
    assert best_baseline({"pagerank": means["pagerank"]}) is None
    assert best_baseline({"bm25": {}}) is None


def test_a_tuned_or_changed_hop_free_label_can_be_the_best_baseline() -> None:
    means = {
        "pagerank": {METRIC: 0.9},
        "bm25:tuned": {METRIC: 0.8},
        "hybrid[k1=1]": {METRIC: 0.7},
        "bm25": {METRIC: 0.7},
    }
    assert best_baseline(means) == "bm25:tuned"
    means["bm25"] = {METRIC: 0.8}
    assert best_baseline(means) == "bm25"  # equally good: the plain label
    means["hybrid[k1=1]"] = {METRIC: 0.85}
    assert best_baseline(means) == "hybrid[k1=1]"


@pytest.mark.parametrize(
    ("frames", "arguments", "error", "message"),
    [
        ({"a": rows([1]), "b": rows([1])}, {"baseline": "c"}, UnknownNameError, "unknown label 'c'"),
        ({"a": rows([1])}, {"baseline": "a"}, InputError, "at least two"),
        ({"a": rows([1]), "b": rows([1])}, {"metric": "all_golt@11"}, UnknownNameError, "Did you mean 'all_gold@11'"),
        ({"a": rows([1]), "b": rows([1])}, {"metric": "MRR"}, InputError, "no column 'MRR'"),
        ({"a": rows([1, 1]).iloc[:1], "b": rows([1, 1]).iloc[1:]}, {}, InputError, "share no question"),
        ({"a": pd.concat([rows([1]), rows([1])]), "b": rows([1])}, {}, InputError, "'q0000' twice"),
        ({"a": rows([1]), "b": rows([1])}, {"alpha": 0.0}, ParameterError, "alpha is 0.0"),
        ({"a": rows([1]), "b": rows([1])}, {"resamples": 0}, ParameterError, "resamples is 0"),
    ],
)
def test_bad_input_is_refused(
    frames: dict[str, pd.DataFrame], arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare(frames, **arguments)  # type: ignore[arg-type]


def verdicts(pairs: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]], metric: str) -> Counter[str]:
    return Counter(
        compare({"new": rows(a, metric), "base": rows(b, metric)}, "base", metric, seed=i, resamples=1_999)
        .pairs[0]
        .verdict
        for i, (a, b) in enumerate(pairs)
    )


def flipped(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], sets: int
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Data sets in which a fair coin decides for each question which label got which value: a true null."""
    rng = np.random.default_rng(11)
    coins = rng.random((sets, len(a))) < 0.5
    return [(np.where(c, a, b), np.where(c, b, a)) for c in coins]


def least(sets: int, share: float = 0.95) -> float:
    """So many of the data sets at least are as expected: 2.6 standard deviations below the mean."""
    return sets * share - 2.6 * math.sqrt(sets * share * (1 - share))


SETS = [100, pytest.param(1_000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("metric", [METRIC, "recall@10", "nDCG@10"])
def test_a_true_null_is_not_distinguishable(metric: str, sets: int) -> None:
    rng = np.random.default_rng(3)
    draw = {
        METRIC: lambda: rng.integers(0, 2, 300).astype(float),
        "recall@10": lambda: rng.integers(0, 3, 300) / 2,
        "nDCG@10": lambda: rng.random(300),
    }[metric]
    # the test holds its level of 5%
    assert verdicts(flipped(draw(), draw(), sets), metric)["not distinguishable"] >= least(sets)


@pytest.mark.parametrize("sets", SETS)
def test_ten_percent_gained_and_five_lost_is_better(sets: int) -> None:
    # z = .05 / √((.15 − .0025)/1000) = 4.1 standard errors: power ≈ .98
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(sets):
        change = rng.choice([1.0, -1.0, 0.0], p=[0.10, 0.05, 0.85], size=1_000)
        base = np.where(change == 0, rng.integers(0, 2, 1_000), change < 0)
        pairs.append((base + change, base.astype(float)))
    assert verdicts(pairs, METRIC)["better"] >= least(sets, 0.98)


@pytest.mark.benchmarks
@pytest.mark.parametrize("sets", SETS)
def test_a_true_null_of_real_differences(sets: int, benchmarks_dir: Path) -> None:
    def published(name: str) -> npt.NDArray[np.float64]:
        path = benchmarks_dir / "hotpotqa-dev500" / "published_runs" / f"{name}_pooled.jsonl"
        records = [json.loads(line)["published"] for line in path.read_text().splitlines()]
        return np.array([r["full_evidence_recall@10"] for r in records])

    bm25, dense = published("bm25"), published("dense")
    assert verdicts(flipped(bm25, dense, sets), METRIC)["not distinguishable"] >= least(sets)
    real = compare({"dense": rows(dense), "bm25": rows(bm25)}, "bm25").pairs[0]
    assert (real.verdict, real.difference) == ("better", pytest.approx(0.664 - 0.5))


def drawn_rows(values: list[float] | np.ndarray) -> pd.DataFrame:
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
    return {"base": drawn_rows((rng.random(count) < 0.5) * scale)} | {
        name: drawn_rows(hit * scale) for name, hit in drawn.items()
    }


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
    frames = {"base": drawn_rows(np.zeros(40)), "x": drawn_rows(np.arange(40) < 6), "y": drawn_rows(np.arange(40) < 6)}
    for pair in compare(frames, "base").pairs:
        assert pair.ci is not None
        assert pair.ci_family is not None
        assert (pair.verdict, excludes_zero(pair.ci)) == ("not distinguishable", True)
        assert not excludes_zero(pair.ci_family)


def test_the_family_s_interval_is_bonferroni_s() -> None:
    rng = np.random.default_rng(0)
    frames = {name: drawn_rows(rng.random(200) < 0.5) for name in ("base", "a", "b", "c", "d")}
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
        frames = {f"l{i}": drawn_rows(rng.random(150) < 0.5) for i in range(8)} | {
            "base": drawn_rows(rng.random(150) < 0.5)
        }
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

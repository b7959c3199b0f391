"""Alternative gold sets, and gold that the corpus lacks."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval.metrics import score, summarise
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Gold, PassageRanking
from hopbench.retrieval.types import Passage

CORPUS = tuple(Passage(f"p{n}", f"title {n // 2}", f"text number {n}") for n in range(16))
IDS = [passage.id for passage in CORPUS]


def benchmark(gold: Gold) -> Benchmark:
    return Benchmark("sets", CORPUS, (BenchmarkQuestion("q", "?", gold=gold),))


def row(gold: Gold, *ranked: str, ragas: bool = False) -> dict[str, Any]:
    rows = score(
        benchmark(gold), {"q": PassageRanking("q", ranked, (), ranked[:5], "")}, ragas=ragas, also=["recall@3"]
    )
    return dict(rows.loc["q"])


def test_the_best_set_counts_for_each_metric() -> None:
    gold = Gold.any_of([["p0", "p2"], ["p4"], ["p6", "p8", "p10"]])
    values = row(gold, "p6", "p8", "p2", "p4", "p1")
    assert (2 / 3, 1.0) == (values["recall@2"], values["recall@5"])  # of the third set; the second in whole
    assert (2 / 3, 0.0, 1.0) == (values["recall@3"], values["all_gold@2"], values["all_gold@5"])
    assert 1.0 == values["MRR"]  # p6 of the third set
    # third set: (1 + 1/log2 3) / (1 + 1/log2 3 + 1/2) = .765361; second: 1/log2 5 = .430677
    assert pytest.approx((1 + 1 / log2(3)) / (1.5 + 1 / log2(3)), abs=1e-6) == values["nDCG@10"]
    # titles 3, 4, 1, 2, 0: the first set has 0, 1 (p1 is called as p0 is), the second 2, the third 3, 4, 5
    assert (2 / 5, 1.0) == (values["title_precision"], values["title_recall"])
    assert pytest.approx(2 * 0.4 * 1 / (0.4 + 1)) == values["title_f1"]


def test_ragas_takes_the_best_set_too() -> None:
    values = row(Gold.any_of([["p0", "p2"], ["p4"]]), "p0", "p4", "p2", ragas=True)
    assert (2 / 3, 1.0) == (values["id_based_context_precision"], values["id_based_context_recall"])


def test_a_question_stands_with_its_smallest_set_and_its_best_ceiling() -> None:
    gold = Gold.any_of([["p0", "p2", "p4"], ["p6", "p8"]])
    known = benchmark(gold)
    summary = summarise(score(known, {"q": PassageRanking("q", ("p0", "p2"))}), known)
    assert ["2"] == list(summary["by_gold"])
    assert (1.0, 1.0) == (summary["ceilings"]["all_gold@2"], summary["ceilings"]["recall@2"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True), min_size=1, max_size=4, unique_by=frozenset
    ),
    st.permutations(IDS),
    st.integers(0, 16),
)
def test_every_metric_is_the_best_over_the_sets_alone(sets: list[list[str]], order: list[str], depth: int) -> None:
    together, alone = row(Gold.any_of(sets), *order[:depth]), [row(Gold(one), *order[:depth]) for one in sets]
    for name in (name for name in together if name != "failure" and not name.startswith("has_answer")):
        assert max(one[name] for one in alone) == together[name], name
    known = benchmark(Gold.any_of(sets))
    summary = summarise(score(known, {"q": PassageRanking("q", tuple(order[:depth]))}), known)
    assert all(value <= summary["ceilings"][name] for name, value in summary["metrics"].items())


def test_gold_that_the_corpus_lacks_is_never_found_and_lowers_the_ceiling() -> None:
    gold = Gold(["p0", "title 0", "p2"])  # an id that is some passage's title
    values = row(gold, "p0", "p2", ragas=True)
    assert (2 / 3, 0.0, 1.0) == (values["recall@5"], values["all_gold@10"], values["MRR"])
    assert (2 / 3, 2 / 3) == (values["title_recall"], values["id_based_context_recall"])
    assert 2 / 3 == values["non_llm_context_recall"]
    known = benchmark(gold)
    ceilings = summarise(score(known, {"q": PassageRanking("q", ("p0", "p2"), (), ("p0", "p2"))}, ragas=True), known)[
        "ceilings"
    ]
    assert (0.666667, 0.0) == (ceilings["recall@5"], ceilings["all_gold@10"])
    assert pytest.approx((1 + 1 / log2(3)) / (1.5 + 1 / log2(3)), abs=1e-6) == ceilings["nDCG@10"]
    assert ceilings["nDCG@10"] == round(values["nDCG@10"], 6)
    assert (0.666667, 0.666667) == (ceilings["title_recall"], ceilings["id_based_context_recall"])
    assert {"title 0": ["q"]} == known.missing_gold


def test_of_graded_gold_the_best_that_is_there_is_the_ceiling() -> None:
    known = benchmark(Gold.judged({"p0": 1, "gone": 3}))
    summary = summarise(score(known, {"q": PassageRanking("q", ("p0",))}), known)
    # gain 1 at rank 1 over 3 + 1/log2 3
    assert round(1 / (3 + 1 / log2(3)), 6) == summary["metrics"]["nDCG@10"] == summary["ceilings"]["nDCG@10"]


def test_a_threshold_changes_gold_and_not_the_gains() -> None:
    grades = {"p0": 1, "p1": 2, "p2": -1, "p3": 0}
    low, high = (row(Gold.judged(grades, least), "p0", "p2", "p1") for least in (1, 2))
    assert (1.0, 1.0) == (low["recall@5"], high["recall@5"])
    assert (0.5, 0.0) == (low["recall@2"], high["recall@2"])
    assert (1.0, 1 / 3) == (low["MRR"], high["MRR"])
    # (1 + 2/log2 4) / (2 + 1/log2 3)
    assert pytest.approx(2 / (2 + 1 / log2(3)), abs=1e-6) == low["nDCG@10"] == high["nDCG@10"]


def test_strategies_see_no_gold() -> None:
    question = replace(benchmark(Gold.any_of([["p0"], ["p1"]])).questions[0], text="Who?").question
    assert "p0" not in repr(question)

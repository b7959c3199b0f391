"""What must hold of the metrics for any rankings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval.metrics import score, summarise
from hopbench.eval.metrics.base import CUTOFFS
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.retrieval.types import Passage

WORDS = ("alder", "birch", "cedar", "the elm", "yes")
CORPUS = tuple(Passage(f"d{i:02}", f"title {i // 2}", WORDS[i % 4]) for i in range(30))
IDS = [p.id for p in CORPUS]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Benchmark, dict[str, PassageRanking]]:
    questions, rankings = [], {}
    for n in range(draw(st.integers(1, 4))):
        gold = draw(st.lists(st.sampled_from(IDS), max_size=12, unique=True))
        answer = draw(st.none() | st.sampled_from(WORDS))
        questions.append(BenchmarkQuestion(f"q{n}", "?", draw(st.sampled_from("ab")), answer, (), tuple(gold)))
        ids = tuple(draw(st.permutations(IDS))[: draw(st.integers(0, 30))])
        failure = draw(st.sampled_from([None, None, None, "broke"]))
        text = " ".join(p.text for p in CORPUS if p.id in ids[:5])
        rankings[f"q{n}"] = PassageRanking(f"q{n}", ids, (), ids[:5], text, failure=failure)
    return Benchmark("any", CORPUS, tuple(questions)), rankings


@settings(max_examples=60, deadline=None)
@given(cases())
def test_bounds_and_monotony(case: tuple[Benchmark, dict[str, PassageRanking]]) -> None:
    benchmark, rankings = case
    rows = score(benchmark, rankings)
    answered = rows[rows["failure"].isna()].drop(columns="failure").astype(float)
    assert ((answered >= 0) & (answered <= 1) | answered.isna()).all(axis=None)
    known = answered.dropna(subset=["MRR"])
    for k in CUTOFFS:
        assert (known[f"all_gold@{k}"] <= known[f"recall@{k}"]).all()
        assert ((known[f"all_gold@{k}"] == 1) == (known[f"recall@{k}"] == 1)).all()
    for smaller, larger in pairwise(CUTOFFS):
        assert (known[f"recall@{smaller}"] <= known[f"recall@{larger}"]).all()
        assert (known[f"all_gold@{smaller}"] <= known[f"all_gold@{larger}"]).all()
    told = answered.dropna(subset=["has_answer"])
    assert (told["has_answer@5"] <= told["has_answer@10"]).all()


@settings(max_examples=60, deadline=None)
@given(cases())
def test_recall_agrees_with_set_arithmetic(case: tuple[Benchmark, dict[str, PassageRanking]]) -> None:
    benchmark, rankings = case
    rows = score(benchmark, rankings)
    for question in benchmark.questions:
        ranking = rankings[question.id]
        if question.gold and ranking.failure is None:
            for k in CUTOFFS:
                hits = len(set(question.gold) & set(ranking.ranked_ids[:k]))
                assert abs(rows.loc[question.id, f"recall@{k}"] - hits / len(question.gold)) < 1e-9


@settings(max_examples=60, deadline=None)
@given(cases())
def test_no_mean_exceeds_its_ceiling(case: tuple[Benchmark, dict[str, PassageRanking]]) -> None:
    benchmark, rankings = case
    summary = summarise(score(benchmark, rankings), benchmark)
    for name, value in summary["metrics"].items():
        assert value <= summary["ceilings"][name]
        assert value <= summary["answered"].get(name, 0.0)
    for group in (*summary["by_type"].values(), *summary["by_gold"].values()):
        assert all(group[name] <= ceiling for name, ceiling in group["ceiling"].items())
    assert sum(g["questions"] for g in summary["by_type"].values()) == len(benchmark.questions)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_order_of_questions_passages_and_gold_does_not_matter(
    case: tuple[Benchmark, dict[str, PassageRanking]],
) -> None:
    benchmark, rankings = case
    turned = Benchmark(
        benchmark.name,
        benchmark.passages[::-1],
        tuple(replace(q, gold=q.gold[::-1]) for q in reversed(benchmark.questions)),
    )
    rows = score(benchmark, rankings)
    other = score(turned, dict(reversed(rankings.items())))
    pd.testing.assert_frame_equal(rows, other.loc[rows.index])
    assert summarise(rows, benchmark) == summarise(other, turned) == summarise(other, benchmark)

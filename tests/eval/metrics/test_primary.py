"""Which metric decides on a benchmark, and that each metric's own direction rules wherever labels are ordered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hopbench.eval.compare import best_baseline
from hopbench.eval.metrics import (
    best_value,
    get_metric,
    lacking,
    primary_metric,
    primary_of,
    rank_key,
    score,
    summarise,
)
from hopbench.eval.report.charts import pareto
from hopbench.eval.runs.evaluate import Plan, best_compared
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.flows.nights.verdict import _best
from hopbench.retrieval.types import Passage

PASSAGES = tuple(Passage(f"p{i:02}", f"Title {i}", "nothing" if i else "It is Burbank.") for i in range(20))


def benchmark(answer: str | None = None, gold: tuple[str, ...] = ()) -> Benchmark:
    questions = [BenchmarkQuestion(f"q{i}", f"Which city is {i}?", answer=answer, gold=gold) for i in range(8)]
    return Benchmark("b", PASSAGES, tuple(questions))


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Burbank", ("p00",), "all_gold@10"),
        (None, ("p00",), "all_gold@10"),
        ("Burbank", (), "has_answer@10"),
        ("yes", (), None),  # no text shows a yes
        (None, (), None),
    ],
)
def test_the_primary_metric_follows_from_what_the_benchmark_knows(
    answer: str | None, gold: tuple[str, ...], expected: str | None
) -> None:
    assert expected == primary_metric(benchmark(answer, gold))


def test_what_is_lacking_is_said_with_the_remedy() -> None:
    assert "" == lacking("all_gold@10")
    assert "qrels/test.tsv" in lacking("has_answer@10")
    assert "metadata.answer" not in lacking("has_answer@10")
    for part in ("qrels/test.tsv", "metadata.answer", "none is ahead"):
        assert part in lacking(None)


def test_files_name_their_primary_metric() -> None:
    assert primary_of({"benchmark": {"primary_metric": None}}) is None
    assert "has_answer@10" == primary_of({"benchmark": {"primary_metric": "has_answer@10"}})


def evaluated(found: dict[str, int]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Labels that have the passage with the answer at rank 1 for so many of the 8 questions, else not at all."""
    asked = benchmark("Burbank")
    others = tuple(p.id for p in PASSAGES[1:])
    rows = {}
    for label, count in found.items():
        ranked = {q.id: (("p00", *others) if i < count else others) for i, q in enumerate(asked.questions)}
        rows[label] = score(asked, {name: PassageRanking(name, ids) for name, ids in ranked.items()})
    summaries = {label: summarise(table, asked) for label, table in rows.items()}
    plan = SimpleNamespace(benchmark=asked, primary=primary_metric(asked), seed=0, strategies={})
    plan.in_sample = lambda label: label == "t"
    return plan, rows, summaries


def test_answers_without_gold_are_compared_by_has_answer_at_10() -> None:
    plan, rows, summaries = evaluated({"bm25": 0, "vector": 1, "pagerank": 8})
    comparison = best_compared(plan, rows, summaries)
    assert comparison is not None
    assert ("has_answer@10", "vector") == (comparison.metric, comparison.baseline)
    pair = comparison.pair("pagerank")
    assert pair is not None
    assert ("better", 7 / 8) == (pair.verdict, pair.difference)  # 7 of 7 differing: p = 2/2^7 = .016, doubled .031


def test_a_night_crowns_no_label_that_was_tuned_on_its_questions() -> None:
    plan, rows, summaries = evaluated({"bm25": 1, "t": 8, "pagerank": 4})
    assert "pagerank" == _best(SimpleNamespace(plan=plan, rows=rows, summaries=summaries))
    plan.primary = None
    assert _best(SimpleNamespace(plan=plan, rows=rows, summaries=summaries)) is None


def test_a_plan_knows_kinds_and_its_own_questions() -> None:
    from hopbench.retrieval.fitted import FittedOn, question_hash
    from hopbench.retrieval.strategies.registry import make

    asked = benchmark("Burbank")
    known = FittedOn("mine", "0" * 64, frozenset({question_hash("which city is 3")}))
    labels = {name: make(name) for name in ("bm25", "activation[max_depth=3]")}
    plan = Plan(asked, SimpleNamespace(), {}, labels, tuned_on=[known])  # type: ignore[arg-type]
    assert ("documented", None) == (plan.kind("bm25"), plan.in_sample("bm25"))
    found = plan.kind("activation[max_depth=3]"), plan.in_sample("activation[max_depth=3]")
    assert ("tuned", {"sets": ["mine"], "questions": 1}) == found
    assert ("closed book", None) == (plan.kind("closed_book"), plan.in_sample("closed_book"))


def test_each_metric_knows_its_direction_and_it_rules_the_order() -> None:
    lower = "noise_sensitivity"
    assert -1.0 == get_metric(lower).sign
    values = {"a": 0.2, "b": None, "c": 0.1, "d": float("nan")}
    assert ["c", "a"] == sorted(values, key=lambda name: rank_key(lower, values[name]))[:2]
    assert ["a", "c"] == sorted(values, key=lambda name: rank_key("recall@5", values[name]))[:2]
    assert 0.1 == best_value(lower, values.values())
    assert 0.2 == best_value("recall@5", values.values())
    assert best_value("recall@5", [None]) is None
    means = {"bm25": {lower: 0.3}, "vector": {lower: 0.2}}
    assert "vector" == best_baseline(means, metric=lower)
    places = [("fast", 1.0, 0.5), ("slow", 9.0, 0.2), ("worst", 9.5, 0.9)]
    assert ["fast", "slow"] == [label for label, _, _ in pareto(places, sign=-1.0)]
    assert ["fast", "worst"] == [label for label, _, _ in pareto(places)]

"""Targets: what may be written, what keeps them, and what a run refuses before it begins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.eval.runs.targets import (
    Target,
    TargetResult,
    check_targets,
    parse_targets,
    refuse_unmeasured,
    targets_entry,
)
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError, UnknownNameError

ENTRIES = {
    "bm25": {"metrics": {"all_gold@10": 0.5, "id_based_context_precision": 0.2}, "latency_ms_p95": 120.0},
    "pagerank[restart=0.3]": {"metrics": {"all_gold@10": 0.75}, "latency_ms_p95": 640.0},
}


def test_a_target_names_a_metric_or_a_cost_and_perhaps_a_label() -> None:
    assert Target("all_gold@10", ">=", 0.2) == Target.parse("all_gold@10>=.20")
    assert Target("latency_ms_p95", "<=", 500.0, "pagerank[restart=0.3]") == Target.parse(
        "pagerank[restart=0.3] latency_ms_p95 <= 500"
    )
    assert Target("recall@5", ">", 0.5, "hoprank:tuned") == Target.parse(" hoprank:tuned recall@5>0.5 ")


@pytest.mark.parametrize(
    "text", ["", "recall@5", "recall@5=.5", "recall@5>=", "recall@5>=high", "recall@5>=nan", ">=1"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Target.parse(text)


def test_an_unknown_metric_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="recall@5"):
        Target.parse("recal@5>=.5")


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_limit_is_kept_as_the_sign_says(value: float, limit: float) -> None:
    met = {op: TargetResult(Target("recall@5", op, limit), "bm25", value).passed for op in (">=", "<=", ">", "<")}
    assert {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit} == met


def test_every_label_is_checked_unless_one_is_named_and_what_was_not_measured_fails() -> None:
    targets = parse_targets(["id_based_context_precision>=.2", "bm25 latency_ms_p95<=100"], ENTRIES)

    found = check_targets(targets, ENTRIES)

    assert [
        "bm25: id_based_context_precision>=0.2 passed with 0.2",
        "pagerank[restart=0.3]: id_based_context_precision>=0.2 failed: not measured",
        "bm25: latency_ms_p95<=100 failed with 120",
    ] == [one.words for one in found]
    assert {"value": 120.0, "passed": False} == targets_entry(found)["latency_ms_p95<=100"]["bm25"]


def test_a_label_that_is_not_run_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="bm25"):
        parse_targets(["bm52 recall@5>=.1"], ENTRIES)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("id_based_context_recall>=.2", "--no-ragas"),
        ("context_precision>=.2", "id_based_context_precision"),
        ("faithfulness>=.2", "--judge"),
        ("answer_em>=.2", "--llm"),
    ],
)
def test_what_the_run_will_not_measure_is_refused_with_what_would(text: str, remedy: str) -> None:
    with pytest.raises(InputError, match=remedy):
        refuse_unmeasured([Target.parse(text)], ragas=False, judged=(), reader=False)
    refuse_unmeasured([Target.parse(text)], ragas=True, judged=("context_precision", "faithfulness"), reader=True)


def test_a_metric_whose_gold_nobody_has_is_refused() -> None:
    asked = [BenchmarkQuestion("q1", "Who?", answer="Ada")]
    every = {"ragas": True, "judged": (), "reader": False}
    for text in ("recall@5>=.1", "id_based_context_recall>=.1"):
        with pytest.raises(InputError, match=r"no question has what it needs\. gold passages go into qrels/test\.tsv"):
            refuse_unmeasured([Target.parse(text)], **every, questions=asked)  # type: ignore[arg-type]
    kept = [Target.parse("has_answer@10>=.1"), Target.parse("latency_ms_p95<=500")]
    refuse_unmeasured(kept, **every, questions=asked)  # type: ignore[arg-type]

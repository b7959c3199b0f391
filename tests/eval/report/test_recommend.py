"""Which label a run recommends: within limits, and beside it what is as good and cheaper."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from hopbench.eval.report.recommend import Limits, recommend
from hopbench.retrieval.support.errors import InputError

METRIC = "all_gold@10"
QUESTIONS = 60


def rows(scores: list[float]) -> pd.DataFrame:
    ids = [f"q{number:02}" for number in range(len(scores))]
    return pd.DataFrame({METRIC: scores, "failure": [None] * len(scores)}, index=pd.Index(ids, name="question_id"))


def entry(value: float, p50: float | None, **more: Any) -> dict[str, Any]:
    return {
        "metrics": {METRIC: value},
        "latency_ms_p50": p50,
        "latency_ms_p95": None if p50 is None else 2 * p50,
        "context_tokens": 300.0,
        "llm_calls": 0,
        "failures": 0,
        "in_sample": None,
        "kind": "documented",
        **more,
    }


def run(**changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """`best` finds 54 of 60, `close` 53 of the same ones at a fifth of the time, `poor` 15."""
    scores = {"best": [1.0] * 54 + [0.0] * 6, "close": [1.0] * 53 + [0.0] * 7, "poor": [1.0] * 15 + [0.0] * 45}
    latencies = {"best": 10.0, "close": 2.0, "poor": 0.5}
    entries = {name: entry(sum(values) / 60, latencies[name]) for name, values in scores.items()}
    for name, change in changes.items():
        entries[name] |= change
    benchmark = {"name": "hand", "questions": QUESTIONS, "primary_metric": METRIC}
    results = {"benchmark": benchmark, "strategies": entries}
    return results, {name: rows(values) for name, values in scores.items()}


def test_the_best_is_named_with_what_cannot_be_told_from_it_and_is_cheaper() -> None:
    found = recommend(*run())
    assert found.best is not None
    assert "best" == found.best.label
    assert ["close"] == [option.label for option in found.alternatives]
    assert ["best", "close", "poor"] == [option.label for option in found.options]
    # 54/60 = 90%; 10 ms / 2 ms = 5 times; (53 - 54)/60 = -1.7 points
    sentence = found.sentence()
    assert sentence.startswith("Take best: it finds all evidence in the top 10 for 90.0% of questions, for 10 ms")
    assert "close is 5.0 times as fast (2 ms against 10) and cannot be told from it (−1.7 points [" in sentence
    assert ["", "not distinguishable", "worse"] == found.to_frame()["verdict"].tolist()


def test_a_label_within_a_tenth_of_the_time_is_not_called_cheaper() -> None:
    found = recommend(*run(close={"latency_ms_p50": 9.0}))
    assert [] == found.alternatives
    assert "These 60 questions cannot tell it from close, of which none is cheaper." in found.sentence()


def test_a_label_that_asks_a_model_more_often_is_not_called_cheaper() -> None:
    assert [] == recommend(*run(close={"llm_calls": 60})).alternatives


@pytest.mark.parametrize(
    ("limits", "change", "best", "reason"),
    [
        (Limits(latency_ms=5), {}, "close", "p95 latency 20.0 ms is above 5"),
        (Limits(latency_ms=30), {"latency_ms_p95": None}, "close", "its latency is not known"),
        (Limits(context_tokens=400), {"context_tokens": 500.0}, "close", "context of 500 tokens is above 400"),
        (Limits(llm=False), {"llm_calls": 120}, "close", "asks a language model 2 times a question"),
        (Limits(), {"failures": 4}, "close", "4 of 60 questions failed"),  # over 5%
        (Limits(), {"failures": 3}, "best", ""),  # 5% is not over 5%
        (Limits(), {"in_sample": {"sets": ["hand"]}, "kind": "tuned"}, "close", "tuned on hand"),
    ],
)
def test_what_is_outside_the_limits_is_left_out_with_its_reason(
    limits: Limits, change: dict[str, Any], best: str, reason: str
) -> None:
    found = recommend(*run(best=change), limits)
    assert found.best is not None
    assert best == found.best.label
    assert reason == "; ".join(next(option.excluded for option in found.options if option.label == "best"))


def test_where_no_label_is_within_the_limits_the_reasons_are_given() -> None:
    found = recommend(*run(), Limits(latency_ms=0.1, llm=False))
    assert found.best is None
    assert found.sentence().startswith(
        "No label can be recommended (limits: p95 latency up to 0.1 ms, no language model): best: p95 latency 20.0 ms"
    )


def test_equal_labels_go_to_the_faster_one() -> None:
    results, table = run(close={"metrics": {METRIC: 0.9}})
    found = recommend(results, {**table, "close": table["best"]})
    assert found.best is not None
    assert "close" == found.best.label


def test_without_gold_and_answers_nothing_is_recommended() -> None:
    results, table = run()
    results["benchmark"]["primary_metric"] = None
    with pytest.raises(InputError, match="hand: nothing to recommend by: no question has gold passages"):
        recommend(results, table)


@pytest.mark.parametrize("limits", [{"latency_ms": 0.0}, {"context_tokens": float("nan")}])
def test_limits_that_nothing_keeps_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InputError, match="the limit must be above 0"):
        Limits(**limits)  # type: ignore[arg-type]

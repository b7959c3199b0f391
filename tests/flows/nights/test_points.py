"""What a night's report draws of the nights before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hopbench.eval.runs.evaluate import interval_of
from hopbench.flows.nights.history import CHARTED, NightlyRecord, charted

METRIC = "all_gold@10"


def night(day: int, labels: dict[str, float | None], metric: str = METRIC, **entry: Any) -> NightlyRecord:
    content = {
        "started": f"day {day:03}",
        "outcome": "good",
        "benchmark": {"name": "tiny", "digest": "d"},
        "metric": metric,
        "labels": {label: {metric: value, "interval": [0.1, 0.9], **entry} for label, value in labels.items()},
    }
    return NightlyRecord(Path(f"tiny-{day:03}"), content)


def test_tonights_labels_are_drawn_oldest_night_first() -> None:
    earlier = [night(2, {"bm25": 0.2, "gone": 0.2}), night(1, {"bm25": None, "vector": 0.1})]
    drawn = charted(night(3, {"bm25": 0.3, "vector": 0.4}), earlier)
    assert [
        ("day 001", "vector", 0.1),
        ("day 002", "bm25", 0.2),
        ("day 003", "bm25", 0.3),
        ("day 003", "vector", 0.4),
    ] == [(point["started"], point["label"], point["value"]) for point in drawn]
    assert {(METRIC, 0.1, 0.9)} == {(point["metric"], point["low"], point["high"]) for point in drawn}


def test_nights_that_another_metric_decided_are_left_out_and_the_oldest_of_many() -> None:
    assert [] == charted(night(2, {"bm25": 0.3}), [])
    assert [] == charted(night(2, {"bm25": 0.3}), [night(1, {"bm25": 0.3}, metric="has_answer@10")])
    many = [night(day, {"bm25": 0.5}) for day in range(CHARTED + 40, 0, -1)]
    drawn = charted(night(CHARTED + 41, {"bm25": 0.5}), many)
    assert (CHARTED, "day 042") == (len(drawn), drawn[0]["started"])


def test_an_interval_counts_failed_questions_as_its_mean_does() -> None:
    rows = pd.DataFrame({METRIC: [1.0] * 50 + [None] * 50, "failure": [None] * 50 + ["gave up"] * 50})
    interval = interval_of(rows, METRIC)
    assert interval is not None
    assert interval[0] < 0.5 < interval[1]  # the mean of all 100 questions
    assert pytest.approx(0.2, abs=0.05) == interval[1] - interval[0]  # 2 × 1.96 × sqrt(0.25 / 100) = 0.196
    assert interval_of(rows.head(1), METRIC) is None

"""A night's report draws each label over the nights, from two nights on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.report import ReportData, write_report
from hopbench.eval.report.charts import over_nights

MakeReport = Callable[..., ReportData]


def point(day: int, label: str, value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    started = f"2026-01-0{day}T02:00:00+00:00"
    return {"started": started, "label": label, "metric": "all_gold@10", "value": value, "low": low, "high": high}


def night(data: ReportData, *points: dict[str, Any]) -> ReportData:
    verdict = {"night": "n", "outcome": "good", "lines": [], "comparisons": [], "metric": "all_gold@10"}
    return replace(data, run={**data.run, "nightly": {**verdict, "history": list(points)}})


def test_each_label_over_the_nights_with_its_intervals(make_report: MakeReport, tmp_path: Path) -> None:
    both = [point(1, "bm25", 0.5, 0.4, 0.55), point(2, "bm25", 0.6, 0.5, 0.75), point(2, "vector", 0.3)]
    data = night(make_report(), *both)
    drawn = over_nights(data)
    assert drawn is not None
    traces = {trace["name"].removesuffix(" *"): trace for trace in drawn["traces"]}
    assert set(data.labels) == set(traces)
    bm25 = traces["bm25"]
    assert (["2026-01-01T02:00:00", "2026-01-02T02:00:00"], [0.5, 0.6]) == (bm25["x"], bm25["y"])
    assert pytest.approx([0.1, 0.1]) == bm25["error_y"]["arrayminus"]  # 0.5 - 0.4, 0.6 - 0.5
    assert pytest.approx([0.05, 0.15]) == bm25["error_y"]["array"]  # 0.55 - 0.5, 0.75 - 0.6
    assert "error_y" not in traces["vector"]  # a night without an interval has no bar, rather than one of length 0
    assert data.labels.index("bm25") == bm25["meta"]["series"]  # the colour it has in the other charts
    write_report(data, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h3>Over the nights</h3>" in page
    assert f"hopbench history {data.benchmark.name} prints the same numbers" in page


def test_one_night_and_a_plain_run_have_no_such_chart(make_report: MakeReport) -> None:
    assert over_nights(make_report()) is None
    assert over_nights(night(make_report(), point(1, "bm25", 0.5), point(1, "vector", 0.5))) is None

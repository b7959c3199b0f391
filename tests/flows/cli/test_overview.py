"""`hopbench ls`, `open` and `history`."""

from __future__ import annotations

import csv
import io
import json
import webbrowser
from pathlib import Path

import pandas as pd
import pytest
from tests.flows.cli.conftest import Hopbench, call

from hopbench.eval.statistics import mean_ci
from hopbench.flows.nights.history import write_night

METRIC = "all_gold@10"


def test_every_run_is_listed_once_newest_first(finished: Path, hopbench: Hopbench) -> None:
    done = hopbench("ls", finished.parent, "--json")
    (first,) = [run for run in json.loads(done.out) if run["folder"] == str(finished)]
    results = json.loads((finished / "results.json").read_text())
    assert ("first", "hopbench run", "tiny", 4, 4) == tuple(
        first[name] for name in ("name", "command", "dataset", "questions", "labels")
    )
    means = {label: entry["metrics"][METRIC] for label, entry in results["strategies"].items()}
    assert (METRIC, max(means.values())) == (first["metric"], first["value"])
    assert first["value"] == means[first["best"]]
    runs = [(run["started"], run["name"], run["command"], run["labels"]) for run in json.loads(done.out)]
    assert [run[0] for run in runs] == sorted((run[0] for run in runs), reverse=True)
    assert len(runs) == len(set(runs))  # the copy that MLflow has is the same run

    shown = hopbench("ls", finished).out
    assert shown.splitlines()[0].split() == [
        "run",
        "started",
        "(UTC)",
        *"command data set questions labels ahead metric mean".split(),
    ]
    assert any(line.startswith("first ") for line in shown.splitlines())
    (row,) = [
        row for row in csv.DictReader(io.StringIO(hopbench("ls", finished, "--csv").out)) if row["name"] == "first"
    ]
    assert str(first["value"]) == row["value"]


def test_an_empty_home_damaged_runs_and_folders_that_are_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = call("ls", home=home)
    assert (0, True) == (done.code, done.out.startswith("no run is kept in "))
    assert not home.exists()
    for name, content in (
        ("a", "{"),
        ("b", "[]"),
        ("c", '{"schema": "hopbench.results/1"}'),
        ("d", '{"schema": "other"}'),
    ):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "results.json").write_text(content)
    done = call("ls", tmp_path / "runs", home=home)
    assert 0 == done.code
    assert ["a", "b", "c"] == [line.split(": ")[1].rpartition("/")[2] for line in done.err.splitlines()]
    assert 2 == call("ls", tmp_path / "nowhere", home=home).code
    assert "hopbench run makes one" in call("open", home=home).err
    assert "is damaged" in call("open", tmp_path / "runs" / "a", home=home).err
    assert "not of schema" in call("open", tmp_path / "runs" / "d", home=home).err


def test_a_report_is_opened_or_its_place_printed(
    finished: Path, hopbench: Hopbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)) or True)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    report = finished / "report.html"
    done = hopbench("open", finished)
    assert (0, f"{report}\n", "no browser here: open the file above in one\n") == (done.code, done.out, done.err)
    assert [] == opened
    done = hopbench("open", finished, BROWSER="firefox")
    assert (0, f"{report}\n", "") == (done.code, done.out, done.err)
    assert [report.as_uri()] == opened
    (newest,) = [run["name"] for run in json.loads(hopbench("ls", "--json").out)][:1]
    assert hopbench("open").out == hopbench("open", newest).out
    assert "unknown run 'nothing'" in hopbench("open", "nothing").err


def test_a_run_without_a_report_says_how_to_make_it(finished: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    (tmp_path / "results.json").write_bytes((finished / "results.json").read_bytes())
    done = hopbench("open", tmp_path)
    assert (2, "") == (done.code, done.out)
    assert f"hopbench report {tmp_path} makes it again" in done.err


def nights(home: Path) -> list[float]:
    """Two nights of `tiny`; returns the scores of bm25 in the second, one of whose questions failed."""
    scores = [1.0, 0.0, 1.0, 1.0, None]
    for day, values in ((1, [1.0, 1.0, 0.0, 0.0, 0.0]), (2, scores)):
        failure = [None if value is not None else "gave up" for value in values]
        rows = pd.DataFrame({"question_id": list("abcde"), "strategy": "bm25", METRIC: values, "failure": failure})
        counted = [value or 0.0 for value in values]  # a failed question counts 0
        mean, interval = sum(counted) / 5, mean_ci(counted)
        assert interval is not None
        entry = {METRIC: mean, "interval": [interval.low, interval.high], "latency_ms_p50": 2.0 * day}
        content = {
            "started": f"2026-01-0{day}T00:00:00+00:00",
            "benchmark": {"name": "tiny", "digest": "d", "questions": 5},
            "outcome": "good",
            "metric": METRIC,
            "labels": {"bm25": entry, "=gone": {METRIC: None}},
            "circumstances": {},
        }
        write_night(home / "nightly" / f"tiny-2026-01-0{day}T000000Z", content, rows)
    return [value or 0.0 for value in scores]


def test_each_label_over_the_nights_with_intervals(tmp_path: Path) -> None:
    scores = nights(tmp_path)
    expected = mean_ci(scores)
    assert expected is not None
    points = json.loads(call("history", "tiny", "--label", "bm25", "--json", home=tmp_path).out)
    assert [(0.4, 2.0), (0.6, 4.0)] == [(point["value"], point["latency_ms_p50"]) for point in points]
    assert (expected.low, expected.high) == (points[1]["low"], points[1]["high"])
    shown = call("history", "tiny", home=tmp_path).out
    assert f"0.600  [{expected.low:.3f}, {expected.high:.3f}]" in shown
    rows = list(csv.DictReader(io.StringIO(call("history", "tiny", "--csv", home=tmp_path).out)))
    assert 4 == len(rows)
    assert {"", "0.4", "0.6"} == {row["value"] for row in rows}


def test_history_of_what_has_none(tmp_path: Path) -> None:
    assert "no night is kept in" in call("history", "tiny", home=tmp_path).err
    nights(tmp_path)
    done = call("history", "tiniest", home=tmp_path)
    assert (2, True) == (done.code, "unknown benchmark with nights 'tiniest'" in done.err)
    assert "unknown label in the nights of tiny 'bm26'" in call("history", "tiny", "--label", "bm26", home=tmp_path).err
    (tmp_path / "nightly" / "tiny-2026-01-02T000000Z" / "night.parquet").write_bytes(b"cut")
    done = call("history", "tiny", home=tmp_path)
    assert (0, True) == (done.code, "is damaged" in done.err)

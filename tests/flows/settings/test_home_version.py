"""Homes of other versions of HopBench."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.made_up_nights import DIGEST, METRIC, Tonight, judged, scores

from hopbench.flows.nights.history import nights
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.home_version import VERSION
from hopbench.retrieval.support.errors import InputError


def version_1(home: Path, name: str, regressions: Sequence[str] = ()) -> None:
    folder = home / "nightly" / name
    folder.mkdir(parents=True)
    rows = scores(0.5).rename_axis("question_id").reset_index().assign(strategy="bm25", ranked_ids="x")
    rows.to_parquet(folder / "questions.parquet")
    entry = {"params": {"fill": True}, "metrics": {METRIC: 0.5}, "latency_ms_p50": 2.0}
    results = {
        "benchmark": {"name": "made", "digest": DIGEST, "questions": 200, "passages": 9},
        "graph": {"fingerprint": "f1", "build_key": "b1"},
        "embedder": "e",
        "strategies": {"bm25": entry},
    }
    (folder / "results.json").write_text(json.dumps(results))
    old = {"benchmark_digest": DIGEST, "previous": "x", "regressions": list(regressions), "changed": []}
    (folder / "nightly.json").write_text(json.dumps(old))


def test_a_home_of_the_first_version_is_upgraded_and_its_nights_still_count(tmp_path: Path) -> None:
    version_1(tmp_path, "made-2026-11-20T020000Z")
    version_1(tmp_path, "made-2026-11-21T020000Z", ["bm25"])
    home = Home(tmp_path).prepare()
    assert json.loads((tmp_path / "home.json").read_text())["version"] == VERSION
    assert [(one.name, one.good) for one in nights(home.nights)] == [
        ("made-2026-11-21T020000Z", False),
        ("made-2026-11-20T020000Z", True),
    ]
    verdict = judged(Tonight({"bm25": scores(0.3)}), home.nights)
    assert (verdict.outcome, verdict.previous) == ("regression", {"bm25": "made-2026-11-20T020000Z"})
    assert home.prepare() == home


def test_a_home_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home.json").write_text(json.dumps({"version": VERSION + 1}))
    with pytest.raises(InputError, match=rf"has version {VERSION + 1}, .*update HopBench, or name another folder"):
        Home(tmp_path).prepare()


def test_a_damaged_stamp_is_told_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("{", "", '{"version": "x"}', '{"version": 0}', "[1]"):
        (tmp_path / "home.json").write_text(content)
        Home(tmp_path).prepare()
        assert VERSION == json.loads((tmp_path / "home.json").read_text())["version"]
    assert 4 == capsys.readouterr().err.count("was damaged")  # a version of 0 is one before all others

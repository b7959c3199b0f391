"""Reading a finished run's folder: what is missing or damaged is named, with the remedy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from hopbench.eval.runs.files import DETAILS_FILE, QUESTIONS_FILE, RESULTS_FILE, RESULTS_SCHEMA, FinishedRun
from hopbench.retrieval.support.errors import InputError, UnknownNameError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    benchmark = {"name": "small", "digest": "d1", "questions": 2, "passages": 3}
    results = {"schema": RESULTS_SCHEMA, "benchmark": benchmark, "strategies": {"bm25": {}, "vector": {}}}
    (tmp_path / RESULTS_FILE).write_text(json.dumps(results))
    rows = [{"question_id": q, "strategy": label, "recall@5": 0.5} for label in ("bm25", "vector") for q in ("a", "b")]
    pd.DataFrame(rows).to_parquet(tmp_path / QUESTIONS_FILE)
    return tmp_path


def test_a_run_is_read_without_details_and_traces(folder: Path) -> None:
    run = FinishedRun.read(folder)
    assert ("small", "d1", ["bm25", "vector"]) == (run.name, run.digest, run.labels)
    assert ({}, {}, None) == (dict(run.facts), dict(run.settings), run.traces)
    assert ["a", "b"] == list(run.rows("vector").index)


def test_the_settings_of_the_run_stand_in_its_details(folder: Path) -> None:
    details = {"run": {"command": "hopbench run", "settings": {"store": "kglite"}}}
    (folder / DETAILS_FILE).write_bytes(gzip.compress(json.dumps(details).encode()))
    run = FinishedRun.read(folder)
    assert ("hopbench run", {"store": "kglite"}) == (run.facts["command"], run.settings)


def test_an_unknown_label_is_refused(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"label in .*'bm26'.*bm25"):
        FinishedRun.read(folder).rows("bm26")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (RESULTS_FILE, b"{", "is damaged"),
        (RESULTS_FILE, b"[]", "not of schema"),
        (RESULTS_FILE, b'{"schema": "hopbench.results/9"}', "not of schema"),
        (DETAILS_FILE, b"no gzip", "is damaged"),
        (DETAILS_FILE, gzip.compress(b"[]", mtime=0), "holds no object"),
    ],
)
def test_a_damaged_or_foreign_file_is_named(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        FinishedRun.read(folder)


def test_a_missing_or_damaged_table_is_named(folder: Path) -> None:
    run = FinishedRun.read(folder)
    (folder / QUESTIONS_FILE).write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"questions\.parquet is damaged"):
        _ = run.table
    (folder / QUESTIONS_FILE).unlink()
    with pytest.raises(InputError, match=r"questions\.parquet does not exist"):
        _ = run.table
    (folder / RESULTS_FILE).unlink()
    with pytest.raises(InputError, match=r"results\.json does not exist"):
        FinishedRun.read(folder)

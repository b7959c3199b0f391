"""`hopbench recommend`: a sentence, a table, and what programs read."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from tests.flows.cli.conftest import Hopbench


def test_a_sentence_and_a_table(hopbench: Hopbench, finished: Path) -> None:
    done = hopbench("recommend", finished)
    assert (0, "") == (done.code, done.err)
    assert done.out.startswith("Take ")
    assert "all_gold@10" in done.out
    assert "not that they are equal" in done.out.replace("\n", " ")


def test_for_programs(hopbench: Hopbench, finished: Path, tmp_path: Path) -> None:
    done = hopbench("recommend", finished, "--json", "--csv", tmp_path / "table.csv", "--latency-ms", "0.000001")
    found = json.loads(done.out)
    assert found["best"] is None
    assert found["sentence"].startswith("No label can be recommended (limits: p95 latency up to 1e-06 ms)")
    table = pd.read_csv(tmp_path / "table.csv")
    assert [option["label"] for option in found["options"]] == table["label"].tolist()
    assert table["left out because"].str.startswith("p95 latency").all()


def test_what_is_no_run_or_no_limit_is_refused(hopbench: Hopbench, finished: Path, tmp_path: Path) -> None:
    done = hopbench("recommend", tmp_path)
    assert 2 == done.code
    assert "name the --out folder of a finished run" in done.err
    done = hopbench("recommend", finished, "--latency-ms", "-1")
    assert 2 == done.code
    assert "--latency-ms -1.0: the limit must be above 0" in done.err

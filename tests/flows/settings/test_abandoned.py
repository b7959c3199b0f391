"""What killed commands leave in a home."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hopbench.flows.settings.home import DAYS, Home

OLD = time.time() - (DAYS + 1) * 86400


TEMPORARY = ("tmp/tables-x1", "tmp/sweep-ab-12", "tmp/pool/0123", "tmp/compared/run")


@pytest.mark.parametrize("name", [*TEMPORARY, "cache/search/ns/.bm25-x", "cache/passages/.ab-x"])
def test_folders_that_nobody_touched_for_a_week_go(tmp_path: Path, name: str) -> None:
    left, used = tmp_path / name, tmp_path / f"{name}-in-use"
    for folder in (left, used):
        folder.mkdir(parents=True)
        (folder / "table").write_bytes(b"")
        os.utime(folder, (OLD, OLD))
    os.utime(left / "table", (OLD, OLD))

    Home(tmp_path).prepare()

    assert (False, True) == (left.exists(), used.exists())


@pytest.mark.parametrize("name", ["tmp/mlflow.lock", "tmp/neo4j-x/file", "cache/search/ns/bm25/file", "runs/a/file"])
def test_what_is_in_use_for_long_stays(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    for path in (file, file.parent):
        os.utime(path, (OLD, OLD))

    Home(tmp_path).prepare()

    assert file.exists()

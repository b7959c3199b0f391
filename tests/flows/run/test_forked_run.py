"""A run in a fork of a process that has run before, beside a strategy that fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.flows.api.conftest import tiny

import hopbench
from hopbench.retrieval.strategies.baselines import BM25
from hopbench.retrieval.strategies.registry import registry

__all__ = ["tiny"]  # a fixture


class Failing(BM25):
    """Fails on every question."""

    name: ClassVar[str] = "failing"

    def search(self, *_: Any) -> Any:
        """Fail."""
        raise RuntimeError("no luck")


@pytest.fixture
def failing() -> Iterator[None]:
    hopbench.register(Failing)
    yield
    registry.cache_clear()


def run_and_report(tiny: Path, labels: list[str], out: Path, report: Path) -> None:
    """Run, and write what was raised where the parent finds it: a fork's standard error is pytest's copy."""
    try:
        hopbench.run(tiny, labels, out=out, ragas=False)
    except BaseException:
        report.write_text(traceback.format_exc(), encoding="utf-8")
        raise
    os._exit(0)  # in CPython 3.11 `threading._shutdown` may fail in a fork of a process that has had other threads


@pytest.mark.usefixtures("failing")
def test_a_run_in_a_fork_beside_a_failing_strategy_returns(tiny: Path, tmp_path: Path) -> None:
    labels = ["bm25", "failing", "pagerank"]
    hopbench.run(tiny, labels, out=tmp_path / "before", ragas=False)
    report = tmp_path / "raised.txt"
    given = (tiny, labels, tmp_path / "fork", report)
    fork = multiprocessing.get_context("fork").Process(target=run_and_report, args=given)
    fork.start()
    fork.join(300)
    fork.kill()
    assert fork.exitcode == 0, report.read_text(encoding="utf-8") if report.is_file() else "it hung"
    found = json.loads((tmp_path / "fork" / "results.json").read_text(encoding="utf-8"))["strategies"]
    assert [1.0, 0.0, 1.0] == [found[label]["coverage"] for label in labels]

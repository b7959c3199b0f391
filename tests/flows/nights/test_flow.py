"""Nights for real: one whose label fails, and one that regresses under a schedule."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from tests.flows.cli.conftest import SERVERS, call, write_benchmark
from tests.flows.nights.test_notify import Handler, Hook

from hopbench.retrieval.graph.construction import plan
from hopbench.retrieval.strategies import registry
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.support.errors import RegressionError

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime

ALARM = '<div class="notice" role="note" id="night">'  # a good night is told without the colour of a warning


def test_one_label_that_fails_makes_the_night_incomplete_and_no_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    bench = write_benchmark(tmp_path / "tiny")
    night = ("nightly", "--dataset", bench, "--strategies", "bm25,pagerank", "--no-prefect", "--no-ragas")

    def broken(*_: object) -> Any:
        raise ZeroDivisionError("no mass")

    with monkeypatch.context() as patch:
        patch.setattr(PageRank, "rank", broken)
        first = call(*night, "--out", tmp_path / "first", home=home)
    assert first.code == 4
    assert "over 5% of the questions failed for pagerank" in first.err
    rows = pd.read_parquet(tmp_path / "first" / "questions.parquet").set_index("strategy")
    assert set(rows.loc["pagerank", "failure"]) == {"ZeroDivisionError: no mass"}
    assert rows.loc["bm25", "failure"].isna().all()  # the other label is finished and scored
    assert ALARM in (tmp_path / "first" / "report.html").read_text()

    second = call(*night, "--out", tmp_path / "second", home=home)
    assert ALARM not in (tmp_path / "second" / "report.html").read_text()
    assert (second.code, "first good night: recorded as the baseline" in second.out) == (0, True)
    drawn = ["Over the nights" in (tmp_path / name / "report.html").read_text() for name in ("first", "second")]
    assert [False, True] == drawn
    kept = {json.loads(file.read_text())["outcome"] for file in (home / "nightly").glob("*/nightly.json")}
    assert kept == {"incomplete", "baseline"}


def test_a_night_that_misses_a_target_is_told_how_it_compares_all_the_same(tmp_path: Path) -> None:
    home, bench = tmp_path / "home", write_benchmark(tmp_path / "tiny")
    night = ("nightly", "--dataset", bench, "--strategies", "bm25", "--no-prefect", "--no-ragas")
    first = call(*night, "--target", "recall@5>1", home=home)
    assert 3 == first.code
    assert "first good night: recorded as the baseline" in first.out
    assert "bm25: recall@5>1 failed with" in first.err
    second = call(*night, "--target", "recall@5>1", home=home)
    assert "no regression, 1 of 1 labels compared" in second.out  # a missed target does not make it no measure
    record = max((home / "nightly").glob("*/nightly.json"), key=lambda file: file.parent.name)
    assert "good" == json.loads(record.read_text())["outcome"]


def test_a_newer_builder_builds_beside_the_old_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    bench = write_benchmark(tmp_path / "tiny")
    night = ("nightly", "--dataset", bench, "--strategies", "bm25", "--no-prefect", "--no-ragas")
    with monkeypatch.context() as patch:
        patch.setattr(plan, "BUILDER_VERSION", plan.BUILDER_VERSION - 1)
        assert call(*night, home=home).code == 0
    (old,) = (home / "graphs").glob("*.kgl")
    second = call(*night, home=home)
    assert (second.code, "no regression" in second.out) == (0, True)
    assert old.exists()
    assert len(list((home / "graphs").glob("*.kgl"))) == 2


@pytest.mark.prefect
def test_a_regression_under_a_schedule_fails_the_flow_run_with_the_reason(
    prefect_runtime: PrefectRuntime,
    home_with_graph: Callable[[Path, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName, LogFilter, LogFilterFlowRunId
    from prefect.logging.handlers import APILogHandler

    from hopbench.flows import nightly

    night: dict[str, Any] = {"dataset": "hopworld", "limit": 60, "strategies": ["bm25", "pagerank"], "ragas": False}
    pagerank = registry.preset("pagerank")
    assert pagerank is not None
    edited = replace(pagerank, parameters={**pagerank.parameters, "restart": 0.99})
    with Hook(("127.0.0.1", 0), Handler) as hook, monkeypatch.context() as patch:
        hook.received = []
        threading.Thread(target=hook.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        for name in SERVERS:
            patch.delenv(name, raising=False)
        patch.setenv("PREFECT_API_URL", prefect_runtime.api_url)
        patch.setenv("HOPBENCH_HOME", str(home_with_graph(tmp_path, "hopworld")))
        patch.setenv("HOPBENCH_WEBHOOK", f"http://127.0.0.1:{hook.server_port}/T0KEN")
        nightly(**night)
        patch.setattr(registry, "preset", lambda name: edited if name == "pagerank" else None)
        with pytest.raises(RegressionError):
            nightly(**night)
        APILogHandler().flush()
        hook.shutdown()
    printed = capfd.readouterr()
    assert [content["outcome"] for _, content in hook.received] == ["regression"]
    with get_client(sync_client=True) as client:
        named = FlowFilter(name=FlowFilterName(any_=["nightly"]))
        found = [run for run in client.read_flow_runs(flow_filter=named) if run.parameters.get("limit") == 60]
        runs = {run.state.name: run.state for run in found if run.state}
        logs = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run.id for run in found])))
    assert set(runs) == {"Completed", "Failed"}
    message = str(runs["Failed"].message)
    assert "regression of pagerank" in message
    assert "changed since then: the spec of pagerank (restart 0.15 → 0.99)" in message
    lines = [log.message for log in logs]
    assert any(line.startswith("trial pagerank: ") for line in lines)
    assert any("exit 3, a regression was found: pagerank" in line for line in lines)
    assert "T0KEN" not in message + printed.out + printed.err + "".join(lines)

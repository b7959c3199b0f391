"""Whole commands as a user runs them, in processes of their own, on the shipped benchmark and on real data."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.flows.cli.conftest import call
from tests.support.places import ROOT

from hopbench.retrieval.strategies import registry

UNTRACKED = [sys.executable, "-m", "tests.support.untracked"]
QUICK = ["--dataset", "hopworld", "--limit", "60", "--no-prefect", "--no-ragas"]
FIVE = "vector,bm25,hybrid,graph_expansion,pagerank"


def without_timings(value: Any) -> Any:
    """The part of results.json that must not vary between equal runs."""
    if isinstance(value, dict):
        return {k: without_timings(v) for k, v in value.items() if "seconds" not in k and "latency" not in k}
    return [without_timings(item) for item in value] if isinstance(value, list) else value


def results(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def home(home_with_graph: Callable[[Path, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for the module, with hopworld's graph."""
    return home_with_graph(tmp_path_factory.mktemp("home"), "hopworld")


@pytest.fixture(scope="module")
def finished(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished")
    done = call("run", *QUICK, "--strategies", FIVE, "--out", out, home=home)
    assert done.code == 0, done.err
    return out


def test_a_run_prints_a_table_and_writes_its_contract_files(finished: Path) -> None:
    entry = results(finished)
    assert entry["schema"] == "hopbench.results/1"
    assert list(entry["strategies"]) == FIVE.split(",")
    table = pd.read_parquet(finished / "questions.parquet")
    assert len(table) == 60 * 5
    assert {"question_id", "strategy", "ranked_ids", "scores", "failure", "latency_ms", "all_gold@10"} <= set(table)
    assert all(len(ids) == len(set(ids)) >= 20 for ids in table["ranked_ids"])
    assert (finished / "report.html").stat().st_size > 100_000
    traces = pd.read_parquet(finished / "traces.parquet")
    assert len(traces) == 60 * 5
    noted = [json.loads(text) for text in traces.loc[traces["strategy"] == "graph_expansion", "trace"]]
    assert all(one["found"] >= one["unique"] >= one["kept"] for one in noted)
    counts = entry["strategies"]["graph_expansion"]["counts"]
    assert counts["unique"] == pytest.approx(sum(one["unique"] for one in noted) / 60, abs=1e-4)
    assert {"initial", "expansion", "scoring"} == set(entry["strategies"]["graph_expansion"]["stage_seconds"])
    assert not (finished / ".unfinished").exists()


def test_a_killed_run_with_other_hash_seeds_goes_on_with_the_same_out_and_finds_the_same(
    finished: Path, home: Path, tmp_path: Path
) -> None:
    line = [*UNTRACKED, "run", *QUICK, "--strategies", FIVE, "--out", str(tmp_path)]
    env = {**os.environ, "HOPBENCH_HOME": str(home), "PYTHONHASHSEED": "2"}
    process = subprocess.Popen(line, env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = tmp_path / ".unfinished"
    _wait_for(lambda: len(list(kept.glob("*.trial"))) >= 2, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list(kept.glob("*.trial"))) >= 2
    assert not (tmp_path / "results.json").exists()

    done = call(*line[len(UNTRACKED) :], home=home)
    assert done.code == 0, done.err
    assert without_timings(results(tmp_path)) == without_timings(results(finished))
    rankings = [
        pd.read_parquet(folder / "questions.parquet").drop(columns="latency_ms") for folder in (tmp_path, finished)
    ]
    pd.testing.assert_frame_equal(*rankings)


def _wait_for(condition: Any, process: subprocess.Popen[Any], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the process ended before it could be killed"
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def test_nightly_records_a_baseline_repeats_quietly_and_notices_a_regression(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # MLflow's writer is a thread of this process here, and slows one measurement of latency more than another: `make
    # soak` has nights as users run them, without an alarm.
    quick = ["--no-prefect", "--no-ragas", "--latency-factor", "1000"]
    night = ["nightly", "--dataset", "hopworld", "--limit", "60", *quick]
    label = ["--strategies", "bm25,pagerank"]
    first = call(*night, *label, home=home)
    assert (first.code, "recorded as the baseline" in first.out) == (0, True), first.err
    second = call(*night, *label, home=home)
    assert (second.code, "compared with hopworld-" in second.out) == (0, True), second.err
    # The label stays the same while what it stands for changes: that is what a nightly run must notice.
    pagerank = registry.preset("pagerank")
    assert pagerank is not None
    with monkeypatch.context() as patch:
        edited = replace(pagerank, parameters={**pagerank.parameters, "restart": 0.99})
        patch.setattr(registry, "preset", lambda name: edited if name == "pagerank" else None)
        worse = call(*night, *label, home=home)
    assert worse.code == 3, worse.err
    assert "pagerank: all_gold@10 -" in worse.err
    assert "the spec of pagerank (restart 0.15 → 0.99)" in worse.err
    untouched = {file: file.read_bytes() for file in (home / "graphs").glob("hopworld-*.kgl")}
    _remove_a_tenth_of_the_edges(home)
    third = call(*night, *label, "--keep", "2", home=home)
    for file, content in untouched.items():
        file.write_bytes(content)
    told = third.out + third.err
    assert "compared with hopworld-" in told, "the regression must not become the next night's measure"
    assert "built alike, so its content was changed afterwards" in told
    assert re.search(r"warning: the graph hopworld-\w+ is not what was built", third.out)
    # Kept are tonight's and the one before, the first as the champion's, and the second where tonight is no good night.
    kept = list((home / "nightly").glob("hopworld-*/nightly.json"))
    assert (third.code, len(kept)) in ((0, 3), (3, 4))


def _remove_a_tenth_of_the_edges(home: Path) -> None:
    import kglite

    for file in (home / "graphs").glob("hopworld-*.kgl"):
        graph = kglite.load(str(file))
        found = graph.cypher("MATCH (a:Entity)-[:MENTIONED_IN]->() RETURN DISTINCT a.id AS id ORDER BY id").to_list()
        some = [row["id"] for row in found[::10]]
        graph.cypher("UNWIND $ids AS id MATCH (:Entity {id: id})-[r:MENTIONED_IN]->() DELETE r", params={"ids": some})
        graph.save(str(file))


@pytest.mark.prefect
def test_nightly_runs_as_prefect_flows_and_is_tracked_in_mlflow(
    home: Path, tmp_path: Path, prefect_runtime: Any
) -> None:
    out = tmp_path / "night"
    night = ("nightly", "--limit", "40", "--strategies", "bm25,graph_expansion", "--no-ragas", "--out", out)
    done = call(*night, home=home, environment={"PREFECT_API_URL": prefect_runtime.api_url})
    assert done.code == 0, done.err

    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs()
    names = [
        re.sub(r" \d{4}-.*", "", run.name) for run in runs if run.state_type and run.state_type.value == "COMPLETED"
    ]
    assert {"nightly", "build_graph"} <= set(names)
    _assert_tracked(home, out)


def _assert_tracked(home: Path, out: Path) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{home / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("hopbench/hopworld")
    assert experiment is not None
    children = client.search_runs([experiment.experiment_id], "attributes.run_name = 'graph_expansion'")
    entry = results(out)
    tracked = [
        run
        for run in children
        if run.data.metrics["recall_at_5"] == entry["strategies"]["graph_expansion"]["metrics"]["recall@5"]
    ]
    assert tracked
    run = tracked[0]
    assert run.data.params["initial_k"] == "10"
    assert run.data.tags["graph_fingerprint"] == entry["graph"]["fingerprint"]
    assert run.data.tags["code_version"]
    assert run.inputs.dataset_inputs[0].dataset.name == "hopworld"
    parent = client.get_run(run.data.tags["mlflow.parentRunId"])
    artifacts = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert {"report.html", "results.json", "questions.parquet"} <= artifacts


# recall@5 and all_gold@10 of bm25, and the least that pagerank may have.
KNOWN = [
    ("hotpotqa-train200", ((0.718, 0.750), (0.79, 0.90))),
    pytest.param("hotpotqa-dev500", ((0.727, 0.768), (0.77, 0.82)), marks=pytest.mark.soak),
]


@pytest.mark.benchmarks
@pytest.mark.parametrize(("name", "figures"), KNOWN)
def test_real_questions_give_the_known_figures(
    name: str, figures: tuple[tuple[float, float], ...], benchmarks_dir: Path, home: Path, tmp_path: Path
) -> None:
    dataset = benchmarks_dir / name
    quick = ["--no-prefect", "--no-ragas", "--strategies", "vector,bm25,pagerank"]
    done = call("run", "--dataset", dataset, "--out", tmp_path, *quick, home=home)
    assert done.code == 0, done.err
    metrics = {label: entry["metrics"] for label, entry in results(tmp_path)["strategies"].items()}
    known, least = figures
    measured = {label: tuple(metrics[label][name] for name in ("recall@5", "all_gold@10")) for label in metrics}
    assert measured["bm25"] == pytest.approx(known, abs=0.01)
    assert all(value >= bound for value, bound in zip(measured["pagerank"], least, strict=True))
    for label, metric in _pairs(["bm25", "vector"], ["recall@5", "all_gold@10"]):
        assert metrics[label][metric] < metrics["pagerank"][metric]
    assert all(entry["failures"] == 0 for entry in results(tmp_path)["strategies"].values())


def _pairs(first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    return [(a, b) for a in first for b in second]

"""Whole sweeps on a tiny benchmark: the table, the preset, reuse after kill -9, and what MLflow shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from eval.benchmarks import load_benchmark
from eval.sweep.arena import sampled
from eval.sweep.model import Objective
from eval.sweep.plan import read_sweep
from eval.sweep.results import Result, ranked
from tests.sweeps import write_benchmark, write_sweep

HOPBENCH = [sys.executable, "-m", "flows.cli.main"]
KILLED_AFTER_TWO = """
import os, signal
from eval.ledger import Ledger
from flows.cli.main import main
put, kept = Ledger.put, []
def killing(self, record):
    put(self, record)
    kept.append(record)
    if len(kept) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
Ledger.put = killing
main()
"""


def command(program: list[str], *arguments: str, home: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOPBENCH_HOME": str(home)}
    return subprocess.run(
        [*program, *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    write_benchmark(folder / "tiny")
    write_benchmark(folder / "again", count=3)
    edges = {"similar_weight": 0, "related_weight": 0}  # whatever the preset says, only mention edges can be removed
    write_sweep(
        folder,
        base=edges,
        objective={"metric": "all_gold@2"},
        datasets=["tiny", "again"],
        write_preset="best.yaml",
        ablations=True,
    )
    return folder


@pytest.fixture(scope="module")
def finished(folder: Path) -> subprocess.CompletedProcess[str]:
    done = command(HOPBENCH, "sweep", "sweep.yaml", "--out", "whole", "--no-prefect", home=folder / "home", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def table(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "trials.parquet")


def test_a_sweep_writes_a_row_per_trial_and_prints_the_best(
    folder: Path, finished: subprocess.CompletedProcess[str]
) -> None:
    rows = table(folder / "whole")
    assert 8 * 2 == len(rows)  # 2 × 2 combinations, each with and without mention edges, on two data sets
    assert {"trial_id", "strategy", "params", "without", "dataset", "all_gold@10", "recall@5", "seconds"} <= set(rows)
    assert rows["trial_id"].is_unique
    assert {"pagerank"} == set(rows["strategy"])
    assert {"", "MENTIONED_IN"} == set(rows["without"])
    assert {(0.15, 1), (0.15, 3), (0.5, 1), (0.5, 3)} == {
        (params["restart"], params["seed_chunks"]) for params in map(json.loads, rows["params"])
    }
    assert "16 trials: 8 configurations × 2 data sets (tiny, again)" in finished.stdout
    whole = rows[rows["without"] == ""].set_index(["trial_id"])
    removed = rows[rows["without"] != ""]
    assert set(removed["ablation_of"]) == set(whole.index)
    assert set(whole["ablation_of"]) == {""}
    assert 4 == finished.stdout.count("not used")  # SIMILAR_TO and RELATED_TO weigh 0 in each of the 4


def test_the_best_is_the_first_row_and_becomes_the_preset_with_its_provenance(
    folder: Path, finished: subprocess.CompletedProcess[str]
) -> None:
    rows, preset = table(folder / "whole"), yaml.safe_load((folder / "best.yaml").read_text())
    means = rows.groupby("params")["all_gold@2"].mean()
    assert means.nunique() > 1
    assert means.max() == means[rows["params"][0]]
    best = json.loads(rows["params"][0])
    assert {name: best[name] for name in ("restart", "seed_chunks")}.items() <= preset["parameters"].items()
    benchmark = load_benchmark(folder / "tiny")
    provenance = preset["provenance"]
    again = load_benchmark(folder / "again")
    tuned_on = {name: (one["digest"], one["questions"], one["role"]) for name, one in provenance["tuned_on"].items()}
    assert {"tiny": (benchmark.digest, 5, "tune"), "again": (again.digest, 3, "tune")} == tuned_on
    assert (16, "sweep.yaml", 0) == (provenance["trials"], provenance["sweep"], provenance["seed"])
    assert round(means.max(), 6) == provenance["value"]


def test_a_killed_sweep_goes_on_and_repeats_no_finished_trial(
    folder: Path, finished: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    arguments = ["sweep", "sweep.yaml", "--out", str(tmp_path / "out"), "--no-prefect"]
    killed = command([sys.executable, "-c", KILLED_AFTER_TWO], *arguments, home=tmp_path / "home", cwd=folder)
    assert -signal.SIGKILL == killed.returncode
    assert not (tmp_path / "out" / "trials.parquet").exists()
    done = command(HOPBENCH, *arguments, home=tmp_path / "home", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 of 16 trials were finished before" in done.stdout
    pd.testing.assert_frame_equal(
        table(folder / "whole").drop(columns="seconds"), table(tmp_path / "out").drop(columns="seconds")
    )
    _assert_tracked_once(tmp_path / "home", table(tmp_path / "out"))


def _assert_tracked_once(home: Path, rows: pd.DataFrame) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{home / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("hopbench/sweeps")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert (["sweep sweep"], ["FINISHED"]) == (
        [run.info.run_name for run in parents],
        [run.info.status for run in parents],
    )
    assert {parents[0].info.run_id} == {run.data.tags["mlflow.parentRunId"] for run in children}
    assert sorted(rows["trial_id"]) == sorted(run.data.tags["trial_id"] for run in children)
    by_id: dict[str, Any] = {run.data.tags["trial_id"]: run for run in children}
    for _, row in rows.iterrows():
        run = by_id[row["trial_id"]]
        assert (row["all_gold@10"], row["dataset"]) == (run.data.metrics["all_gold_at_10"], run.data.params["dataset"])
    assert {"trials.parquet", "sweep.yaml", "best.yaml"} == {
        f.path for f in client.list_artifacts(parents[0].info.run_id)
    }


def test_dry_run_counts_and_runs_nothing(folder: Path, tmp_path: Path) -> None:
    done = command(HOPBENCH, "sweep", "sweep.yaml", "--dry-run", home=tmp_path / "home", cwd=folder)
    assert (0, True) == (done.returncode, "16 trials" in done.stdout), done.stderr
    assert not (tmp_path / "home").exists()


def test_bad_input_is_refused_with_exit_code_2(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "tiny")
    bad = write_sweep(tmp_path, grid={"restart": [7.0]})
    done = command(HOPBENCH, "sweep", str(bad), "--out", "o", home=tmp_path / "home", cwd=tmp_path)
    assert (2, True) == (done.returncode, "pagerank.restart = 7.0" in done.stderr)
    lost = write_sweep(tmp_path, datasets=["hopwurld"])
    done = command(HOPBENCH, "sweep", str(lost), "--out", "o", home=tmp_path / "home", cwd=tmp_path)
    assert (2, True) == (done.returncode, "sweep.yaml: datasets: unknown benchmark 'hopwurld'" in done.stderr)
    done = command(HOPBENCH, "sweep", str(lost), home=tmp_path / "home", cwd=tmp_path)
    assert (2, True) == (done.returncode, "--out is missing" in done.stderr)


def test_sweeping_on_a_set_for_reporting_warns(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "tiny", role="report")
    file = write_sweep(tmp_path, grid={}, questions=3)
    done = command(HOPBENCH, "sweep", str(file), "--out", "o", "--no-prefect", home=tmp_path / "home", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "warning: tiny is for reporting" in done.stdout
    assert "best all_gold@10 by data set: tiny" in done.stdout


def test_questions_are_a_seeded_subset_in_their_order(folder: Path) -> None:
    benchmark = load_benchmark(folder / "tiny")
    chosen = sampled(benchmark, 3, 1).questions
    assert chosen == sampled(benchmark, 3, 1).questions
    assert [q for q in benchmark.questions if q in chosen] == list(chosen)
    assert 3 == len(chosen)
    assert len({tuple(q.id for q in sampled(benchmark, 3, seed).questions) for seed in range(20)}) > 1
    assert benchmark is sampled(benchmark, 5, 1)


def test_ties_go_to_the_second_metric_then_to_the_smaller_parameters(folder: Path) -> None:
    class Fake:
        def __init__(self, metrics: dict[str, float]) -> None:
            self.metrics = metrics

    candidates = read_sweep(folder / "sweep.yaml").candidates
    scores = [(0.5, 0.1), (0.5, 0.3), (0.6, 0.0), (0.5, 0.3)]
    results: list[Any] = [
        Result(candidate, {"a": Fake({"all_gold@10": first, "recall@5": second})})  # type: ignore[dict-item]
        for candidate, (first, second) in zip((candidates[n] for n in (6, 4, 2, 0)), scores, strict=True)
    ]
    order = [results.index(one) for one in ranked(results, Objective())]
    # The last has restart .15, the second .5; their texts differ first there.
    assert [2, 3, 1, 0] == order

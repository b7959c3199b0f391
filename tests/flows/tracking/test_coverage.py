"""MLflow has no zero for what was never measured, and coverage beside each mean: written for real, and read back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from tests.support.sweeps import GOLD, QuietTracker, write_benchmark, write_sweep
from tests.support.trials import trials_of

from hopbench.eval.metrics import measured_shares, summarise, with_coverage
from hopbench.eval.runs.evaluate import Evaluation, Plan, evaluate
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.flows.orchestration.steps import plain_steps
from hopbench.flows.run.finished import Finished
from hopbench.flows.run.payloads import tracked_trials
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.sweeps import flow as sweep_module
from hopbench.flows.sweeps.flow import sweep
from hopbench.flows.tracking.client import tracking_uri, writers_lock
from hopbench.flows.tracking.payload import to_message
from hopbench.flows.tracking.writer import Writer
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.types import Counters, Hit, Ranking


@dataclass(frozen=True, kw_only=True)
class Stumbling(Strategy):
    """Fails on the questions whose id contains `word`; all contain ""."""

    name: ClassVar[str] = "stumbling"
    summary: ClassVar[str] = "fails"
    word: str = param("", "what it stumbles over")

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Fail, or find one passage."""
        return [
            Ranking(one.id, failure="fell") if self.word in one.id else Ranking(one.id, [Hit("p01", 1.0)], ["p01"])
            for one in batch.questions
        ]

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking."""
        return batch.vector_rankings


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    index = built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))
    asked = tuple(BenchmarkQuestion(one.id, one.text, gold=GOLD[one.id]) for one in ASKED)  # no answers
    labels = {"bm25": make("bm25"), "none": Stumbling(), "some": Stumbling(word="q1")}
    record = {"fingerprint": "f", "build_key": "k", "nodes": {}, "edges": {}, "settings": {}, "build_seconds": 0.0}
    plan = Plan(Benchmark("world", WORLD, asked), index, record, labels)
    return evaluate(plan, trials_of(plan), 0.0, plain_steps)


@pytest.fixture(scope="module")
def logged(evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, float]]]:
    """Metrics by label, as MLflow's own client reads them back from its database."""
    home = Home(tmp_path_factory.mktemp("home")).prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for name, value in home.environment(os.environ).items():
            patch.setenv(name, value)
        from mlflow import MlflowClient

        writer = Writer(tracking_uri(home), "made", home.mlartifacts.as_uri(), writers_lock(home), home.mlflow_db)
        writer.prepare()
        options = RunOptions(dataset="world", out=Path("out"))
        for payload in tracked_trials(Finished(evaluation, "world", 1.0), options, home.scratch / "tables"):
            writer.write(to_message(payload))
        client = MlflowClient(tracking_uri=tracking_uri(home), registry_uri=tracking_uri(home))
        yield {run.info.run_name: run.data.metrics for run in client.search_runs([writer.experiment_id])}


def test_what_was_never_measured_is_no_zero(logged: dict[str, dict[str, float]]) -> None:
    never = logged["none"]  # every question failed: its zero-filled means are 0 by the filling alone
    assert {} == {
        name: value
        for name, value in never.items()
        if name.startswith(("recall", "all_gold", "nDCG")) and not name.endswith(".coverage")
    }
    assert (0.0, 0.0) == (never["coverage"], never["recall_at_5.coverage"])
    assert "context_tokens" not in never
    assert float(len(ASKED)) == never["failures"]
    assert not [name for name in logged["bm25"] if name.startswith(("has_answer", "answer_"))]  # there are no answers


def test_each_mean_has_its_coverage_beside_it(logged: dict[str, dict[str, float]], evaluation: Evaluation) -> None:
    for label in ("bm25", "some"):
        summary = evaluation.summaries[label]
        for name, share in summary["measured"].items():
            called = name.replace("@", "_at_")
            assert logged[label][called] == summary["metrics"][name]
            assert logged[label][f"{called}.coverage"] == share
    assert 1.0 == logged["bm25"]["recall_at_5.coverage"]
    assert 0.8 == logged["some"]["recall_at_5.coverage"]  # 4 of the 5 questions with gold


def test_the_shares_alone_are_those_of_the_summary(evaluation: Evaluation) -> None:
    benchmark = evaluation.plan.benchmark
    for label, rows in evaluation.rows.items():
        assert summarise(rows, benchmark)["measured"] == measured_shares(rows, benchmark), label
    assert {"a": 0.5, "a.coverage": 0.25, "b.coverage": 0.0} == with_coverage(
        {"a": 0.5, "b": 0.0}, {"a": 0.25, "b": 0.0}
    )


def test_a_sweeps_trial_has_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hopbench.eval.sweep.plan import read_sweep

    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sweep_module, "Tracker", QuietTracker)
    write_benchmark(tmp_path / "tiny")
    plan = read_sweep(write_sweep(tmp_path, grid={"restart": [0.5]}), {})
    sweep(plan, tmp_path / "out", prefect=False)
    (trial,) = [one for one in QuietTracker.latest.payloads if one.params.get("strategy") == "pagerank"]
    assert 1.0 == trial.metrics["recall@5.coverage"]
    assert trial.metrics["recall@5"] > 0.0

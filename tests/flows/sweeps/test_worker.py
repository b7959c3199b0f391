"""A sweep's trials on threads, processes and Dask are those of one process, whatever becomes of a worker."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from tests.support.sweeps import write_benchmark, write_sweep

from hopbench.eval.sweep.context import TrialContext
from hopbench.eval.sweep.plan import read_sweep
from hopbench.eval.trials.ledger import TrialRecord
from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.orchestration.steps import plain_steps
from hopbench.flows.run.worker import work
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import WorkerOptions
from hopbench.flows.sweeps.flow import sweep
from hopbench.flows.sweeps.trials import rank_on_workers, units_of
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.flows.orchestration.runtime import PrefectRuntime
    from hopbench.retrieval.graph.construction.plan import GraphPlan

ENTRIES = [
    {"strategy": "pagerank", "grid": {"restart": [0.15, 0.5], "seed_chunks": [1, 3]}},
    {"strategy": "graph_expansion", "grid": {"min_strength": [0.3, 0.5], "chunk_weight": [0.5, 0.7]}},
]


@dataclass(frozen=True)
class Stage:
    """Eight configurations on the tiny benchmark, two questions a batch."""

    home: Home
    context: TrialContext
    graph: tuple[GraphOptions, GraphPlan]
    strategies: Mapping[int, Strategy]

    def alone(self) -> dict[int, TrialRecord]:
        """The trials in this process."""
        return {number: self.context.run(strategy) for number, strategy in self.strategies.items()}

    def on(self, runner: str, kill: bool = False) -> dict[int, TrialRecord]:
        """The trials as workers rank them; `kill` ends a worker process when the first trial is back."""
        found: dict[int, TrialRecord] = {}
        killed: list[int] = []

        def then(number: int, ranked: TrialOutcome) -> None:
            found[number] = self.context.run(self.strategies[number], ranked)
            workers = [p.pid for p in multiprocessing.active_children() if p.pid and "Spawn" in type(p).__name__]
            if kill and not killed:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

        rank_on_workers(
            WorkerOptions(runner=runner, workers=2, batch=2), self.home, self.context, self.graph, self.strategies, then
        )
        assert kill == bool(killed)
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spread")
    write_benchmark(folder / "tiny")
    write_sweep(folder, strategy=ENTRIES, grid={})
    text = (folder / "sweep.yaml").read_text().replace("grid: {}\n", "", 1)
    (folder / "sweep.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def stage(folder: Path) -> Stage:
    home = Home(folder / "home").prepare()
    options = GraphOptions(dataset=str(folder / "tiny"))
    benchmark = options.benchmark()
    graph = options.graph_plan(benchmark, home)
    index = open_index(options, graph, home)
    record, _ = built_graph(graph, index, home, plain_steps)
    plan = read_sweep(folder / "sweep.yaml")
    index.floors.update(plan.floors)
    context = TrialContext(benchmark, benchmark.digest, index, str(record["fingerprint"]), batch=2)
    return Stage(home, context, (options, graph), {n: one.strategy for n, one in enumerate(plan.candidates)})


def content(record: TrialRecord) -> tuple[object, ...]:
    """All of a trial that must not depend on where it was ranked."""
    return record.trial_id, record.settings, record.metrics, record.questions.to_json(), record.costs, record.failures


def same(first: Mapping[int, TrialRecord], second: Mapping[int, TrialRecord]) -> None:
    assert {n: content(one) for n, one in first.items()} == {n: content(one) for n, one in second.items()}


LONG = [pytest.param(runner, marks=pytest.mark.soak) for runner in ("processes", "dask")]


@pytest.mark.prefect
@pytest.mark.parametrize("runner", ["threads", *LONG])
def test_trials_are_the_same_on_every_runner(runner: str, stage: Stage, prefect_runtime: PrefectRuntime) -> None:
    plain = stage.alone()
    with prefect_runtime.flow_settings():
        spread = stage.on(runner, kill=runner == "processes")
    same(plain, spread)
    assert len({record.questions.to_json() for record in plain.values()}) > 1


@pytest.mark.prefect
def test_what_a_lost_worker_was_at_is_ranked_again(
    stage: Stage, prefect_runtime: PrefectRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[object] = []

    def lost_once(token: str, opened: Any, unit: Any) -> Any:
        if not lost:
            lost.append(unit)
            raise OSError("the worker is gone")
        return work(token, opened, unit)

    monkeypatch.setattr("hopbench.flows.run.worker.work", lost_once)
    with prefect_runtime.flow_settings():
        same(stage.alone(), stage.on("threads"))
    assert 1 == len(lost)


@contextmanager
def in_this_process() -> Iterator[str]:
    """A scheduler and a worker that share this process but speak over TCP; its address."""
    from distributed import LocalCluster

    options = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **options) as cluster:
        yield cluster.scheduler_address.removeprefix("tcp://")


@contextmanager
def in_processes(workers: int, scratch: Path) -> Iterator[str]:
    """A scheduler and its workers, each a process of its own on loopback; its address."""
    with ExitStack() as stack:

        def started(*arguments: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "dask", *arguments]
            process = subprocess.Popen(command, stderr=stderr, stdout=subprocess.DEVNULL, text=True)
            stack.enter_context(process)
            stack.callback(process.terminate)
            return process

        loopback = ("--host", "127.0.0.1", "--no-dashboard")
        scheduler = started("scheduler", *loopback, "--port", "0", stderr=subprocess.PIPE)
        assert scheduler.stderr is not None
        lines = iter(scheduler.stderr.readline, "")
        address = next(found[1] for line in lines if (found := re.search(r"tcp://(127\.0\.0\.1:\d+)", line)))
        for _ in range(workers):
            started("worker", address, *loopback, "--nthreads", "1", "--local-directory", str(scratch))
        yield address


PROCESSES = [pytest.param(count, marks=pytest.mark.soak) for count in (1, 2)]  # each takes seconds to start


@pytest.mark.prefect
@pytest.mark.parametrize("processes", [0, *PROCESSES])
def test_a_cluster_is_taken_by_its_address(processes: int, stage: Stage, prefect_runtime: PrefectRuntime) -> None:
    prefect_runtime.wait()
    cluster = in_processes(processes, stage.home.scratch) if processes else in_this_process()
    with cluster as address, prefect_runtime.flow_settings():
        spread = stage.on(f"dask={address}")
    same(stage.alone(), spread)


@pytest.mark.soak  # its trials on threads are compared above
@pytest.mark.prefect
def test_a_whole_sweep_on_a_runner_has_the_same_table(
    folder: Path, prefect_runtime: PrefectRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for spread in (WorkerOptions(batch=2), WorkerOptions(runner="threads", workers=2, batch=2)):
        monkeypatch.setenv("HOPBENCH_HOME", str(folder / f"home-{spread.runner}"))
        swept = sweep(read_sweep(folder / "sweep.yaml"), folder / f"out-{spread.runner}", spread=spread)
        assert (8, 0) == (swept.trials, swept.reused)
        rows = pd.read_parquet(folder / f"out-{spread.runner}" / "trials.parquet")
        tables.append(rows.drop(columns=[name for name in rows if "seconds" in name]))
    pd.testing.assert_frame_equal(*tables)


def test_a_unit_holds_what_walks_alike_and_there_are_enough_of_them(stage: Stage) -> None:
    units = units_of(stage.strategies, parts=3, workers=1)
    assert sorted((n, part) for part, numbers in units for n in numbers) == [
        (n, part) for n in range(8) for part in range(3)
    ]
    walks = [{stage.strategies[n].shared_work() for n in numbers} for _, numbers in units]
    assert all(len(walk) == 1 for walk in walks)
    sizes = {(stage.strategies[n].name, len(numbers)) for _, numbers in units for n in numbers}
    assert sizes == {("graph_expansion", 2), ("pagerank", 1)}  # a walk of pagerank has its own restart and seeds
    assert max(len(numbers) for _, numbers in units_of(stage.strategies, parts=3, workers=8)) == 1


def test_a_runner_without_prefect_is_refused(folder: Path, tmp_path: Path) -> None:
    plan = read_sweep(folder / "sweep.yaml")
    with pytest.raises(InputError, match="leave out --no-prefect"):
        sweep(plan, tmp_path, prefect=False, spread=WorkerOptions(runner="threads"))
    asking = replace(plan, content=plan.content.model_copy(update={"llm": "small"}))
    with pytest.raises(InputError, match="share no model's pace"):
        sweep(asking, tmp_path, spread=WorkerOptions(runner="processes"))


def test_a_cluster_that_is_not_there_is_refused_before_a_sweep_begins(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopbench.flows.run.worker.CONNECT_SECONDS", 1)
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    with pytest.raises(InputError, match="no Dask scheduler answers there"):
        sweep(
            read_sweep(folder / "sweep.yaml"), tmp_path / "out", spread=WorkerOptions(runner="dask=tcp://127.0.0.1:9")
        )
    assert not (tmp_path / "home" / "mlflow.db").exists()
    assert not (tmp_path / "out").exists()

"""Units of work for a work pool's workers: as JSON in a shared folder, and by a second process for real."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil
import pytest
from tests.flows.cli.conftest import call, write_benchmark

from hopbench.eval.trials.batch_work import Unit
from hopbench.flows.api.runs import Run
from hopbench.flows.orchestration import work_pool
from hopbench.flows.orchestration.pool_flow import rank_units
from hopbench.flows.orchestration.spool import Spool, take_units
from hopbench.flows.run.worker import RunJob, code_here
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.sweeps.worker import SweepJob, TrialUnit
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.strategies.registry import resolve
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime

TOKEN = "0123456789abcdef"
LABELS = "bm25,pagerank[restart=0.3]"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("pool") / "tiny")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> Home:
    """A home with the benchmark's graph."""
    place = Home(tmp_path_factory.mktemp("pool-home"))
    assert call("graph", "build", "--no-prefect", "--dataset", dataset, home=place.root).code == 0
    return place


@pytest.fixture
def job(home: Home, dataset: Path, monkeypatch: pytest.MonkeyPatch) -> RunJob:
    monkeypatch.setenv("HOPBENCH_HOME", str(home.root))
    options = RunOptions(dataset=str(dataset), out=Path("out"), strategies=LABELS, runner="pool:mine", batch=2)
    graph = options.graph_plan(options.benchmark(), home)
    code = code_here(resolve(LABELS).values())
    return RunJob(TOKEN, options.absolute(), home.root, graph.namespace, graph.build_key, code)


def results(spool: Spool, job: Any) -> dict[int, Any]:
    return {number: job.outcome_from_json(spool.outcome(number)["outcome"]) for number in spool.done()}


def ranked(outcome: Any) -> Any:
    """What must be equal, wherever a unit is ranked."""
    one = outcome.outcome
    return one.label, one.rankings, one.hits, one.notes, one.parameters


def test_two_workers_take_each_unit_once_and_find_what_one_would(home: Home, job: RunJob) -> None:
    units = [Unit(part, label) for part in (0, 1) for label in LABELS.split(",")]
    spool = Spool.of(home, TOKEN)
    spool.write(job, units)
    done: list[int] = []
    workers = [
        threading.Thread(target=lambda name=name: done.append(take_units(home, TOKEN, name))) for name in ("a", "b")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(done) == len(units)
    alone = job.open()
    for number, one in sorted(results(spool, job).items()):
        assert ranked(alone.run(units[number])) == ranked(one)
    assert take_units(home, TOKEN, "c") == 0


def test_a_lost_workers_units_are_for_the_next(home: Home, job: RunJob) -> None:
    spool = Spool.of(home, TOKEN[::-1])
    spool.write(job, [Unit(0, "bm25"), Unit(1, "bm25")])
    assert spool.claimed(0, "lost")
    assert not spool.claimed(0, "other")
    assert take_units(home, TOKEN[::-1], "other") == 1
    spool.release({"lost"})
    assert take_units(home, TOKEN[::-1], "other") == 1
    assert spool.done() == {0, 1}


def test_a_sweeps_job_comes_back_as_it_was(home: Home, job: RunJob) -> None:
    kinds = [PageRank()]
    place = (job.options, home.root, job.namespace, job.build_key)
    sweep = SweepJob(TOKEN, *place, ["q1", "q3"], 1, {("pagerank", "similar_threshold"): 0.25}, kinds, job.code)
    again = SweepJob.from_json(sweep.as_json())
    assert (again.questions, again.floors, again.strategies) == (sweep.questions, sweep.floors, kinds)
    unit = TrialUnit(1, {7: PageRank(restart=0.3)})
    assert unit == sweep.unit_from_json(sweep.unit_as_json(unit))
    first, second = (one.open().run(unit)[7] for one in (sweep, again))
    assert ranked(first) == ranked(sweep.outcome_from_json(sweep.outcome_as_json({7: second}))[7])


@pytest.mark.prefect
def test_files_in_labels_are_those_of_the_folder_that_the_run_started_in(
    home: Home, job: RunJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_runtime: PrefectRuntime
) -> None:
    started, elsewhere, label, token = tmp_path / "started", tmp_path / "elsewhere", "hoprank[weights=w.json]", "a" * 16
    started.mkdir()
    elsewhere.mkdir()
    shipped = files("hopbench.retrieval.strategies.hoprank") / "weights.json"
    (started / "w.json").write_bytes(shipped.read_bytes())

    monkeypatch.chdir(started)
    code = code_here(resolve(label).values())
    labelled = replace(job, token=token, options=replace(job.options, strategies=label), code=code)
    spool = Spool.of(home, token)
    spool.write(labelled, [Unit(0, label)])
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOPBENCH_HOME", os.path.relpath(home.root))
    with prefect_runtime.flow_settings():
        assert rank_units(token) == 1
    assert "error" not in spool.outcome(0)
    assert Path.cwd() == elsewhere


def test_an_error_of_a_worker_and_a_wrong_name_are_reported(home: Home, job: RunJob) -> None:
    token = "f" * 16
    spool = Spool.of(home, token)
    spool.write(RunJob(token, job.options, home.root, job.namespace, "another", job.code), [Unit(0, "bm25")])
    assert take_units(home, token, "a") == 1
    assert "does not find the graph" in spool.outcome(0)["error"]
    for wrong in ("../../etc", "f", ""):
        with pytest.raises(InputError, match="no name of a job"):
            Spool.of(home, wrong)
    with pytest.raises(InputError, match="holds no job"):
        take_units(home, "e" * 16, "a")


@pytest.mark.prefect
def test_a_pool_that_is_not_there_is_refused(
    home: Home, dataset: Path, tmp_path: Path, prefect_runtime: PrefectRuntime
) -> None:
    given = ("--dataset", dataset, "--strategies", "bm25", "--no-ragas", "--out", tmp_path, "--runner", "pool:nobody")
    done = call("run", *given, home=home.root, environment={"PREFECT_API_URL": prefect_runtime.api_url})
    assert done.code == 2
    assert "--runner pool:nobody: the server has no such work pool" in done.err


VANISHING = """
import sys, time
from hopbench.flows.orchestration import work_pool
from hopbench.flows.orchestration.pool_flow import rank_units
from hopbench.flows.orchestration.spool import Spool
from hopbench.flows.settings.home import Home
spool = Spool.of(Home.resolve(), sys.argv[1])
assert spool.claimed(0, sys.argv[2])
spool.beat(sys.argv[2], 1)
print("working", flush=True)
time.sleep(600)
"""


@pytest.mark.prefect
def test_a_killed_worker_is_noticed_and_its_unit_goes_to_another(
    home: Home,
    job: RunJob,
    prefect_runtime: PrefectRuntime,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.states import Completed, Running

    for name, value in (("POLL_SECONDS", 0.05), ("STATES_SECONDS", 0.1), ("SILENT_SECONDS", {"RUNNING": 1.0})):
        monkeypatch.setattr(work_pool, name, value)
    monkeypatch.setenv("PREFECT_API_URL", prefect_runtime.api_url)
    pool, found = work_pool.WorkPool("vanishing", 1, home), dict[Any, Any]()
    with prefect_runtime.flow_settings(), get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="vanishing", type="process"), overwrite=True)
        waiting = threading.Thread(target=pool.run, args=(job, [Unit(0, "bm25")], found.__setitem__), daemon=True)
        waiting.start()

        def asked_for(number: int) -> Any:
            """The pool's flow run of that number."""
            wait_for(lambda: len(pool._runs) == number)
            return client.read_flow_run(cast("Any", list(pool._runs)[-1]))

        lost = asked_for(1)
        command = [sys.executable, "-c", VANISHING, lost.parameters["job"], str(lost.id)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "working\n"
            client.set_flow_run_state(lost.id, Running(), force=True)  # it is missed from now on
            worker.kill()
        second = asked_for(2)
        client.set_flow_run_state(second.id, Running(), force=True)
        assert take_units(home, second.parameters["job"], str(second.id)) == 1
        client.set_flow_run_state(second.id, Completed(), force=True)
        waiting.join(60)
        state = client.read_flow_run(lost.id).state
    assert [Unit(0, "bm25")] == list(found)
    assert state is not None
    assert (state.type.value, "no heartbeat of its worker for 1 s" in str(state.message)) == ("CRASHED", True)
    assert f"flow run {lost.id}: no heartbeat of its worker" in caplog.text
    assert "Its units go to another one" in caplog.text


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.05)


@contextmanager
def worker_of(pool: str, runtime: PrefectRuntime, home: Home, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real worker of a pool; the block ends it."""
    environment = {**os.environ, "PREFECT_API_URL": runtime.api_url, "HOPBENCH_HOME": str(home.root)}
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool]
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.terminate()
            worker.wait(60)


@pytest.mark.soak
@pytest.mark.prefect
def test_a_machine_that_is_lost_while_it_ranks_costs_no_unit(
    home: Home,
    dataset: Path,
    tmp_path: Path,
    prefect_runtime: PrefectRuntime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker and all its processes are killed when it has claimed a unit; a second worker comes later."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    monkeypatch.setattr(work_pool, "SILENT_SECONDS", {"RUNNING": 20.0, "PENDING": 60.0})
    with prefect_runtime.flow_settings(), get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="lost", type="process"), overwrite=True)
    with ExitStack() as stack:
        first = stack.enter_context(worker_of("lost", prefect_runtime, home, tmp_path))

        def lose() -> None:
            wait_for(lambda: list((home.scratch / "pool").glob("*/*.claim")), 300)
            machine = [psutil.Process(first.pid), *psutil.Process(first.pid).children(recursive=True)]
            for one in machine:
                one.kill()
            stack.enter_context(worker_of("lost", prefect_runtime, home, tmp_path))

        losing = threading.Thread(target=lose)
        losing.start()
        given = ("--dataset", dataset, "--strategies", LABELS, "--no-ragas", "--batch", "2", "--runner", "pool:lost")
        done = call(
            *("run", *given, "--workers", "1", "--out", tmp_path / "out"),
            home=home.root,
            environment={"PREFECT_API_URL": prefect_runtime.api_url},
        )
        losing.join()
    assert done.code == 0, done.err
    assert {"bm25", "pagerank[restart=0.3]"} == set(Run(tmp_path / "out").leaderboard().index)


@pytest.mark.soak
@pytest.mark.prefect
def test_a_second_process_that_works_for_a_pool_ranks_the_same(
    home: Home, dataset: Path, tmp_path: Path, prefect_runtime: PrefectRuntime
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    left = sorted((home.scratch / "pool").glob("*"))  # of other tests
    with prefect_runtime.flow_settings(), get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="tests", type="process"), overwrite=True)
    with worker_of("tests", prefect_runtime, home, tmp_path):
        for runner in ((), ("--runner", "pool:tests", "--workers", "2")):
            given = ("--dataset", dataset, "--strategies", LABELS, "--no-ragas", "--batch", "2", *runner)
            done = call(
                *("run", *given, "--out", tmp_path / (runner[1] if runner else "plain")),
                home=home.root,
                environment={"PREFECT_API_URL": prefect_runtime.api_url},
            )
            assert (done.code, done.err) == (0, "")
    plain, pooled = (Run(tmp_path / name).questions() for name in ("plain", "pool:tests"))
    for column in ("question_id", "strategy", "ranked_ids", "scores"):
        assert [list(value) for value in plain[column]] == [list(value) for value in pooled[column]], column
    assert left == sorted((home.scratch / "pool").glob("*"))  # the job's own folder is gone

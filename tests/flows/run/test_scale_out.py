"""Trials × question batches on threads, processes and Dask: the same results, whatever becomes of a worker."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.flows.cli.conftest import write_benchmark
from tests.support.trials import trials_of

from hopbench.eval.trials.trial import TrialOutcome, Unit, merged, shared_seconds
from hopbench.eval.trials.unfinished import Unfinished
from hopbench.eval.types import PassageRanking
from hopbench.flows.run.worker import check_runner, rank_on_workers
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.support.errors import IncompleteError, InputError, StoreError, UnknownNameError
from hopbench.retrieval.types import Counters

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.flows.orchestration.runtime import PrefectRuntime

LABELS = "bm25,graph_expansion,pagerank"


def part(number: int, *questions: str) -> TrialOutcome:
    rankings = {question: PassageRanking(question, (f"p{number}",)) for question in questions}
    counters = Counters(round_trips=1)
    return TrialOutcome("bm25", "bm25", {}, rankings, counters=counters, seconds=0.5, shared_seconds=0.25)


def test_units_are_put_together_in_the_order_of_their_batches() -> None:
    whole = merged([part(0, "q1", "q2"), part(1, "q3")])
    assert list(whole.rankings) == ["q1", "q2", "q3"]
    assert (whole.counters.round_trips, whole.seconds) == (2, 1.0)


def test_what_a_batch_shares_is_counted_once() -> None:
    found = {Unit(0, "a"): part(0), Unit(0, "b"): part(0), Unit(1, "a"): part(1)}
    assert shared_seconds(found) == 0.5


def test_a_failure_keeps_its_kind() -> None:
    for error in (StoreError("gone"), InputError("no"), UnknownNameError("store", "x", ["kglite"])):
        back = pickle.loads(pickle.dumps(error))
        assert (type(error), str(error)) == (type(back), str(back))


@pytest.mark.parametrize(
    ("given", "error", "word"),
    [
        ({"runner": "dusk"}, UnknownNameError, "Did you mean 'dask'"),
        ({"runner": "threads=2"}, InputError, "only dask takes an address"),
        ({"runner": "threads", "no_prefect": True}, InputError, "leave out --no-prefect"),
        ({"workers": 3}, InputError, "of which runner"),
    ],
)
def test_runners_that_cannot_be(given: dict[str, Any], error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        RunOptions(dataset="hopworld", out=Path("out"), **given)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("scale") / "tiny")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("scale-home")).prepare()


Evaluate = Callable[..., "tuple[Evaluation, Unfinished]"]


@pytest.fixture
def evaluated(home: Home, dataset: Path, prefect_runtime: PrefectRuntime, tmp_path: Path) -> Evaluate:
    """Evaluates the tiny benchmark, two questions a batch, on a runner; the graph is built once."""
    from hopbench.eval.runs.evaluate import Plan, evaluate
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.flows.orchestration.steps import plain_steps
    from hopbench.retrieval.strategies.registry import resolve

    def run(runner: str, kept: Unfinished | None = None, workers: int = 2) -> tuple[Evaluation, Unfinished]:
        given = {"strategies": LABELS, "runner": runner, "batch": 2, "workers": workers if runner else None}
        options = RunOptions(dataset=str(dataset), out=tmp_path, **given)  # type: ignore[arg-type]
        benchmark = options.benchmark()
        graph = options.graph_plan(benchmark, home)
        index = open_index(options, graph, home)
        record, _ = built_graph(graph, index, home, plain_steps)
        plan = Plan(benchmark, index, record, resolve(LABELS), batch=2)
        kept = kept or Unfinished(tmp_path / f"kept-{runner or 'plain'}".replace(":", "-"))
        if not runner:
            return evaluate(plan, trials_of(plan), 0.0, plain_steps), kept
        with prefect_runtime.flow_settings():
            return evaluate(plan, *rank_on_workers(plan, options, home, kept, plain_steps), plain_steps), kept

    return run


def found(evaluation: Evaluation) -> dict[str, Any]:
    """Everything of a trial that must not depend on where it ran."""
    return {
        label: (list(one.rankings.values()), one.hits, one.notes, counted(one.counters))
        for label, one in evaluation.trials.items()
    }


def counted(counters: Counters) -> dict[str, Any]:
    return {name: getattr(counters, name) for name in counters.__slots__ if name != "stage_seconds"}


class Killer(threading.Thread):
    """Kills one worker process when the first unit has come back, and remembers which."""

    def __init__(self, kept: Unfinished) -> None:
        super().__init__()
        self._kept = kept
        self.killed: int | None = None

    def run(self) -> None:
        deadline = time.monotonic() + 120
        while self.killed is None and time.monotonic() < deadline:
            workers = [p.pid for p in multiprocessing.active_children() if p.pid and "Spawn" in type(p).__name__]
            if workers and list(self._kept.folder.glob("*.trial")):
                os.kill(workers[0], signal.SIGKILL)
                self.killed = workers[0]
            time.sleep(0.005)


@pytest.mark.prefect
@pytest.mark.parametrize(
    ("runners", "processes"),  # each process takes seconds to start; test_worker.py ranks a sweep's trials on Dask
    [(("threads", "processes"), 1), pytest.param(("threads", "dask", "processes"), 2, marks=pytest.mark.soak)],
)
def test_threads_dask_and_processes_of_which_one_is_killed_find_the_same(
    runners: tuple[str, ...], processes: int, evaluated: Evaluate, tmp_path: Path
) -> None:
    plain, _ = evaluated("")
    for runner in runners:
        kept = Unfinished(tmp_path / runner)
        killer = Killer(kept) if runner == "processes" else None
        if killer is not None:
            killer.start()
        scaled, _ = evaluated(runner, kept, workers=2 if runner == "threads" else processes)
        assert found(scaled) == found(plain), runner
        assert scaled.summaries == plain.summaries
        assert len(list(kept.folder.glob("*-?of2.trial"))) == 3 * 2  # each label × batch was kept as it came
        assert all(one.latency_ms for one in scaled.trials.values())
        if killer is not None:
            killer.join()
            assert killer.killed is not None


@pytest.mark.prefect
def test_pools_that_always_break_end_with_what_to_do(
    evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lost(*_: object) -> None:
        raise OSError("the worker is gone")

    monkeypatch.setattr("hopbench.flows.run.worker.work", lost)
    with pytest.raises(IncompleteError, match=r"3 pools of workers ended .* fewer --workers"):
        evaluated("threads")


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopbench.flows.run.worker.CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match=r"--runner dask=tcp://127.0.0.1:9: no Dask scheduler answers there"):
        check_runner("dask=tcp://127.0.0.1:9")

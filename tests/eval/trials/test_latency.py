"""Latency beside a yardstick: what is measured, and what a ratio means. Nothing here depends on real time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from threadpoolctl import threadpool_info

from hopbench.eval.trials import latency as module
from hopbench.eval.trials.latency import YARDSTICK_VERSION, Timer, clock, measure_paced, pace, reference, yardsticks
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.baselines import BM25
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.types import Counters, Ranking


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def test_a_pace_is_the_median_ratio_to_the_yardsticks_around_each_call() -> None:
    # calls of 2, 4 and 9 ms; around them 1 and 1, 1 and 3, 3 and 3: 2/1, 4/2, 9/3
    found = pace([2.0, 4.0, 9.0], {"yardstick": [1.0, 1.0, 3.0, 3.0]})

    assert {"version": YARDSTICK_VERSION, "own_ms": 4.0, "yardstick_ms": 2.0, "to_yardstick": 2.0} == found


def test_a_machine_of_half_the_speed_leaves_the_pace_as_it_is() -> None:
    quiet = pace([2.0, 4.0, 9.0], {"yardstick": [1.0, 1.0, 3.0, 3.0]})
    busy = pace([4.0, 8.0, 18.0], {"yardstick": [2.0, 2.0, 6.0, 6.0]})

    assert (quiet["to_yardstick"], 2 * quiet["own_ms"]) == (busy["to_yardstick"], busy["own_ms"])


def test_time_spent_waiting_for_a_processor_is_not_a_calls_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = tmp_path / "schedstat"
    waits.write_text("100 5000000 1\n")
    seconds = iter([1.0, 1.010])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(module, "WAITS", waits)
    with clock() as (timed, _):
        wall, own = timed(lambda: waits.write_text("100 12000000 2\n"))  # 7 ms more on the queue

    assert (10.0, 3.0) == (round(wall, 6), round(own, 6))


def test_where_waits_are_not_measured_the_yardstick_is_as_long_as_a_call(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    walls = iter([6.0])  # of the first call; whatever comes then takes 2 ms
    monkeypatch.setattr(module, "WAITS", Path("/nowhere"))
    monkeypatch.setattr(module, "yardsticks", lambda _: {"yardstick": lambda: ran.append(1)})
    with clock() as (_, measures_waits):
        assert not measures_waits

    @contextmanager
    def slow() -> Iterator[tuple[Timer, bool]]:
        yield (lambda call: (call(), (next(walls, 2.0), 2.0))[1]), False

    monkeypatch.setattr(module, "clock", slow)
    measure_paced(make("bm25"), index, ASKED[:2])

    assert 1 + 3 * 3 == len(ran)  # once to see how long it takes, then 6 ms / 2 ms times after each of 3 calls


def test_calls_are_measured_on_one_thread_and_between_yardsticks(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    threads: set[int] = set()

    class Telling(BM25):
        def rank(self, batch: Batch, counters: Counters) -> list[Ranking]:
            said.append("call")
            threads.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
            return super().rank(batch, counters)

    monkeypatch.setattr(module, "yardsticks", lambda _: {"yardstick": lambda: said.append("yardstick")})
    taken, found = measure_paced(Telling(), index, ASKED[:2])

    assert ["call", "yardstick"] * 3 == said  # the first question twice
    assert {1} == threads
    assert (2, {"version", "own_ms", "yardstick_ms", "to_yardstick"}) == (len(taken), set(found))


def test_the_yardstick_is_fixed_and_a_server_has_its_own(index: Index) -> None:
    class Server:
        def reference(self) -> None: ...

    assert reference() == reference()
    assert ["yardstick"] == list(yardsticks(index.store))
    assert ["yardstick", "engine"] == list(yardsticks(Server()))


def test_no_questions_have_no_pace(index: Index) -> None:
    assert ({}, {}) == measure_paced(make("bm25"), index, [])

"""Seconds per stage: nested stages are told apart."""

from __future__ import annotations

import time

import pytest

from hopbench.retrieval.support.timing import done_once, once_apart, stage
from hopbench.retrieval.types import Counters


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the clock shows; tests move it."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_an_inner_stage_takes_its_time_out_of_the_outer_one(clock: list[float]) -> None:
    outer, inner = Counters(), Counters()

    with stage(outer, "graph"):
        clock[0] += 1
        with stage(inner, "name embedding"):
            clock[0] += 10
            with stage(inner, "read"):
                clock[0] += 100
        clock[0] += 2
    with stage(outer, "graph"):
        clock[0] += 4

    assert {"graph": 1 + 2 + 4} == outer.stage_seconds
    assert {"name embedding": 10, "read": 100} == inner.stage_seconds


def test_a_stage_that_fails_is_timed_too(clock: list[float]) -> None:
    spent = Counters()

    def fail() -> None:
        with stage(spent, "graph"), stage(spent, "read"):
            clock[0] += 1
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    with stage(spent, "after"):
        clock[0] += 5

    assert {"graph": 0, "read": 1, "after": 5} == spent.stage_seconds


def test_what_is_done_once_is_no_part_of_the_stage_that_needed_it_first(clock: list[float]) -> None:
    spent = Counters()

    with once_apart() as once, stage(spent, "graph"):
        clock[0] += 1
        with done_once(), stage(spent, "name embedding"):
            clock[0] += 10
            with done_once():
                clock[0] += 100
        clock[0] += 2
    with done_once():
        clock[0] += 1000  # nobody asks

    assert 110 == once.seconds
    assert {"graph": 3, "name embedding": 10} == spent.stage_seconds


def test_what_fails_while_it_is_done_once_is_counted_too(clock: list[float]) -> None:
    def fail() -> None:
        with done_once():
            clock[0] += 1
            raise ValueError

    with once_apart() as once, pytest.raises(ValueError, match=r"^$"):
        fail()

    assert 1 == once.seconds

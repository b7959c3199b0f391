"""Threads with one BLAS thread each, and the paused collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from threading import Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hopbench.retrieval.support import processes as collector
from hopbench.retrieval.support.processes import (
    collector_paused,
    in_threads,
    one_blas_thread,
)


def threads() -> set[int]:
    """Of NumPy's own BLAS, once it is loaded; SciPy's may have been loaded after the libraries were looked up."""
    return {each["num_threads"] for each in threadpool_info() if f"{os.sep}numpy.libs{os.sep}" in each["filepath"]}


def divide(number: int) -> None:
    assert 1 // number


def fails_within() -> None:
    with one_blas_thread():
        assert threads() == {1}
        raise ZeroDivisionError


def test_one_thread_within_and_those_of_before_after_an_error() -> None:
    assert np.eye(2).sum() == 2  # loaded before it is looked up
    with threadpool_limits(2, "blas"):
        with pytest.raises(ZeroDivisionError):
            fails_within()
        assert threads() == {2}


def test_the_last_that_leaves_gives_the_threads_back() -> None:
    """As when two threads of a process rank: the first one in is the first one out."""
    first, second = one_blas_thread(), one_blas_thread()
    with threadpool_limits(2, "blas"):
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}


def test_parts_are_done_in_threads_each_with_one_of_blas() -> None:
    seen: list[tuple[int, set[int]]] = []
    with threadpool_limits(2, "blas"):
        in_threads(lambda part: seen.append((part, threads())), range(5))
        assert sorted(seen) == [(part, {1}) for part in range(5)]
        assert threads() == {2}
        assert in_threads(str, range(5)) == ["0", "1", "2", "3", "4"]


def test_an_error_of_a_part_is_raised_and_the_threads_are_given_back() -> None:
    with threadpool_limits(2, "blas"):
        with pytest.raises(ZeroDivisionError):
            in_threads(divide, [1, 0, 1])
        assert threads() == {2}


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is frozen, as in a process of the program; the tests' own has what it imported frozen."""
    monkeypatch.setattr(collector, "_somebody_freezes", Event())
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture
def collections(thawed: None) -> Iterator[list[str]]:
    """The collections that begin and end from here on."""
    seen: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        seen.append(phase)

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_the_collector_neither_runs_meanwhile_nor_walks_over_what_was_made_as_soon_as_it_resumes(
    collections: list[str],
) -> None:
    with collector_paused():
        made = [[n] for n in range(5 * gc.get_threshold()[0])]
    after = [[n] for n in range(gc.get_threshold()[0] // 2)]

    assert gc.isenabled()
    assert not collections
    assert len(made) > len(after)


@pytest.mark.usefixtures("thawed")
def test_a_cycle_made_meanwhile_is_found_by_a_full_collection() -> None:
    gc.collect()
    with collector_paused():
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle

    assert gc.collect() >= 1


def test_what_somebody_has_frozen_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collector_paused():
        pass

    assert gc.get_freeze_count() > frozen / 2


def test_what_is_frozen_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([0, 5])
    monkeypatch.setattr(collector, "_somebody_freezes", Event())
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(counts))
    monkeypatch.setattr(gc, "unfreeze", lambda: None)

    for _ in range(4):
        with collector_paused():
            pass

    assert [] == list(counts)


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()

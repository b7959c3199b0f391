"""Usable processors, threads with one BLAS thread each, and the collector that is off."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hopbench.retrieval.support import processes
from hopbench.retrieval.support.processes import collector_off, in_threads, one_blas_thread, usable_processors


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


@pytest.mark.parametrize(("quota", "found"), [("max 100000", 3), ("150000 100000", 1), ("200000 100000", 2), ("?", 3)])
def test_a_container_says_how_many_processors_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, found: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(processes, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})

    assert found == usable_processors()


def test_the_collector_is_off_within_and_on_again_after_an_error() -> None:
    def fails() -> None:
        with collector_off():
            assert not gc.isenabled()
            divide(0)

    with pytest.raises(ZeroDivisionError):
        fails()
    assert gc.isenabled()

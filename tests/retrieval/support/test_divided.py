"""Work divided among forks: in what order it comes back, and what is done again here."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest

from hopbench.retrieval.support import divided as module
from hopbench.retrieval.support.divided import divided


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_processors", lambda: 3)


def test_parts_are_done_by_several_processes_in_turn() -> None:
    def work(part: str) -> tuple[str, int]:
        time.sleep(0.05)
        return part, os.getpid()

    found = dict(divided(work, "abcdefghijkl", 3))

    assert "abcdefghijkl" == "".join(found[number][0] for number in sorted(found))
    done = Counter(process for _, process in found.values())
    assert 3 == len(done)
    assert os.getpid() in done
    assert min(done.values()) > 1
    last = time.monotonic() + 10
    while multiprocessing.active_children():  # forks that sent all are ended, but not waited for
        assert time.monotonic() < last
        time.sleep(0.01)


def test_a_process_that_is_slow_does_less() -> None:
    here = os.getpid()

    def work(part: int) -> int:
        time.sleep(0.02 if os.getpid() == here else 0.5)
        return os.getpid()

    assert [here] * 9 == sorted(dict(divided(work, range(10), 2)).values(), key=lambda one: one != here)[:9]


def test_results_of_a_copy_arrive_while_the_work_goes_on() -> None:
    here = os.getpid()

    def work(part: int) -> int:
        time.sleep(0.2)
        return os.getpid()

    found = [process for _, process in divided(work, range(8), 2)]

    assert 4 == found.count(here)
    assert 2 <= len([process for process in found[:-2] if process != here])


def test_what_a_copy_sent_before_it_was_killed_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    here = os.getpid()

    def work(part: int) -> int:
        time.sleep(0.1)
        if part > 4 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    found = dict(divided(work, range(8), 2))

    assert list(range(8)) == sorted(found)
    assert 2 == len([process for process in found.values() if process != here])
    assert 1 == len(caplog.messages)


def test_nothing_comes_of_no_part() -> None:
    assert [] == list(divided(lambda part: part, [], 3))


def test_more_parts_than_a_pipe_holds_are_refused() -> None:
    assert 16_384 == len(list(divided(lambda part: part, range(16_384), 1)))
    with pytest.raises(ValueError, match="16,385 parts; a pipe holds the numbers of 16,384"):
        list(divided(lambda part: part, range(16_385), 1))


def fails_elsewhere(part: str, here: int, how: Callable[[], object]) -> int:
    if os.getpid() != here:
        how()
    time.sleep(0.1)
    return os.getpid()


def raises() -> None:
    raise ValueError("lost")


@pytest.mark.parametrize("how", [raises, lambda: os._exit(1), partial(time.sleep, 60)])
def test_what_a_copy_does_not_send_is_done_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: Callable[[], object]
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    here = os.getpid()

    found = dict(divided(partial(fails_elsewhere, here=here, how=how), "abcd", 2))

    assert dict.fromkeys(range(4), here) == found
    assert ["a fork of this process did not finish its share of the work; it is done again here"] == caplog.messages
    assert [] == multiprocessing.active_children()


def test_results_that_no_pipe_holds_arrive() -> None:
    def work(part: int) -> tuple[int, bytes]:
        time.sleep(0.02)
        return os.getpid(), bytes([part]) * 3_000_000

    found = dict(divided(work, range(6), 3))

    assert [bytes([part]) * 3_000_000 for part in range(6)] == [found[part][1] for part in range(6)]
    assert 3 == len({process for process, _ in found.values()})


class _Unreadable:
    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return raises, ()


def test_what_cannot_be_read_is_done_here(caplog: pytest.LogCaptureFixture) -> None:
    def work(part: int) -> object:
        time.sleep(0.05)
        return _Unreadable() if os.getpid() != here and part > 2 else os.getpid()

    here = os.getpid()
    found = dict(divided(work, range(6), 2))

    assert list(range(6)) == sorted(found)
    assert not any(isinstance(one, _Unreadable) for one in found.values())
    assert 1 == len(caplog.messages)
    assert [] == multiprocessing.active_children()


def test_what_cannot_be_sent_is_done_here() -> None:
    def work(part: str) -> Callable[[], str]:
        time.sleep(0.05)
        return lambda: part

    found = dict(divided(work, "abcd", 2))

    assert ["a", "b", "c", "d"] == [found[number]() for number in range(4)]


def test_without_room_for_a_process_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)

    assert [(0, os.getpid()), (1, os.getpid())] == list(divided(lambda _: os.getpid(), "ab", 2))


def test_an_error_here_ends_the_copies() -> None:
    here = os.getpid()

    def work(part: str) -> None:
        if os.getpid() != here:
            time.sleep(60)
        raise ValueError(part)

    begun = time.monotonic()
    with pytest.raises(ValueError, match=r"[ab]"):
        list(divided(work, "ab", 2))

    assert time.monotonic() - begun < 30
    assert [] == multiprocessing.active_children()


def test_closing_the_iterator_ends_the_copies() -> None:
    here = os.getpid()
    with closing(divided(lambda _: time.sleep(60 if os.getpid() != here else 0), "abc", 3)) as found:
        next(found)
        assert 2 == len(multiprocessing.active_children())

    assert [] == multiprocessing.active_children()


def test_where_no_copy_may_be_made_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_processors", lambda: 1)

    assert dict.fromkeys(range(3), os.getpid()) == dict(divided(lambda _: os.getpid(), range(3), 3))

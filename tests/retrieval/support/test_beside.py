"""Work divided among forks: in what order it comes back, and what is done again here."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest

from hopbench.retrieval.support import beside
from hopbench.retrieval.support.beside import beside_copies


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "usable_processors", lambda: 3)


def test_shares_are_done_beside_each_other_and_come_in_their_order() -> None:
    found = list(beside_copies(lambda share: (os.getpid(), share), ["a", "b", "c"]))

    assert ["a", "b", "c"] == [share for _, share in found]
    assert os.getpid() == found[0][0]
    assert 3 == len({process for process, _ in found})


def test_nothing_comes_of_no_share() -> None:
    assert [] == list(beside_copies(lambda share: share, []))


def fails_elsewhere(share: str, here: int, how: Callable[[], object]) -> tuple[str, int]:
    if os.getpid() != here:
        how()
    return share, os.getpid()


def raises() -> None:
    raise ValueError("lost")


@pytest.mark.parametrize("how", [raises, lambda: os._exit(1), partial(time.sleep, 60)])
def test_what_a_copy_does_not_leave_is_done_here(monkeypatch: pytest.MonkeyPatch, how: Callable[[], object]) -> None:
    monkeypatch.setattr(beside, "PATIENCE", 0.2)
    here = os.getpid()

    assert [("a", here), ("b", here)] == list(beside_copies(partial(fails_elsewhere, here=here, how=how), ["a", "b"]))
    assert [] == multiprocessing.active_children()


def test_what_cannot_be_sent_is_done_here() -> None:
    found = list(beside_copies(lambda share: lambda: share, ["a", "b"]))

    assert ["a", "b"] == [one() for one in found]


def test_without_room_for_a_process_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)

    assert [os.getpid()] * 2 == list(beside_copies(lambda _: os.getpid(), ["a", "b"]))


def test_an_error_here_ends_the_copies() -> None:
    def work(share: str) -> None:
        if share == "b":
            time.sleep(60)
        raise ValueError(share)

    begun = time.monotonic()
    with pytest.raises(ValueError, match="a"):
        list(beside_copies(work, ["a", "b"]))

    assert time.monotonic() - begun < 30
    assert [] == multiprocessing.active_children()


def test_closing_the_iterator_ends_the_copies() -> None:
    with closing(beside_copies(time.sleep, [0, 60, 60])) as found:
        next(found)
        assert 2 == len(multiprocessing.active_children())

    assert [] == multiprocessing.active_children()


def test_where_no_copy_may_be_made_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "usable_processors", lambda: 1)

    assert [os.getpid()] * 3 == list(beside_copies(lambda _: os.getpid(), range(3)))

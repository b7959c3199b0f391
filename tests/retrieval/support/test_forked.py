"""Copies of this process: what they leave behind, how many there are at a time, and what a failure of one does."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from hopbench.retrieval.support import forked
from hopbench.retrieval.support.forked import beside_copies, in_copies, usable_processors


def note(folder: Path, name: str, known: list[int]) -> None:
    begun = time.monotonic()
    time.sleep(0.05)
    (folder / name).write_text(f"{os.getpid()} {begun} {time.monotonic()} {known[0]}")


def test_each_work_is_done_in_a_copy_that_knows_what_this_process_knows(tmp_path: Path) -> None:
    known = [os.getpid()]

    in_copies([partial(note, tmp_path, str(number), known) for number in range(6)], 2)

    told = [(tmp_path / str(number)).read_text().split() for number in range(6)]
    assert {str(os.getpid())} == {parent for *_, parent in told}
    assert 6 == len({copy for copy, *_ in told} - {str(os.getpid())})
    spans = [(float(begin), float(end)) for _, begin, end, _ in told]
    assert max(sum(begin <= at < end for begin, end in spans) for at, _ in spans) <= 2


def test_a_copy_that_fails_stops_nothing(tmp_path: Path) -> None:
    def fails() -> None:
        raise ValueError("lost")

    works: list[Callable[[], object]] = [fails, partial(note, tmp_path, "done", [1])]
    in_copies(works, 2)

    assert ["done"] == [file.name for file in tmp_path.iterdir()]


def test_copies_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    def waits() -> None:
        (tmp_path / "copy").write_text(str(os.getpid()))
        time.sleep(60)

    parent = os.fork()
    if parent == 0:
        in_copies([waits], 1)
        os._exit(0)
    while not (tmp_path / "copy").exists() or not (tmp_path / "copy").read_text():
        time.sleep(0.01)
    copy = psutil.Process(int((tmp_path / "copy").read_text()))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)

    copy.wait(20)
    assert 1 <= usable_processors() <= 4


def test_shares_are_done_beside_each_other_and_come_in_their_order() -> None:
    known = object()

    found = list(beside_copies(lambda share: (os.getpid(), share, known), ["a", "b", "c"], [known]))

    assert ["a", "b", "c"] == [share for _, share, _ in found]
    assert os.getpid() == found[0][0]
    assert 3 == len({process for process, *_ in found})
    assert all(one is known for *_, one in found)


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
    monkeypatch.setattr(forked, "PATIENCE", 0.2)
    here = os.getpid()

    assert [("a", here), ("b", here)] == list(beside_copies(partial(fails_elsewhere, here=here, how=how), ["a", "b"]))
    assert [] == psutil.Process().children()


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
    assert [] == psutil.Process().children()

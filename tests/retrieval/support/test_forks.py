"""Copies of this process: what they leave behind, how many there are at a time, and what a failure of one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from hopbench.retrieval.index import Batch
from hopbench.retrieval.support import forks, processes
from hopbench.retrieval.support.forks import in_copies
from hopbench.retrieval.support.processes import usable_processors


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


@pytest.mark.parametrize(("quota", "copies"), [("max 100000", 3), ("150000 100000", 1), ("200000 100000", 2), ("?", 3)])
def test_a_container_says_how_many_processors_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, copies: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(processes, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})

    assert copies == usable_processors()


IMPORTING = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from hopbench.retrieval.support.forks import prepare_forks
prepare_forks()
threading.Thread(target=__import__, args=("slow_to_import",), daemon=True).start()
while "slow_to_import" not in sys.modules:
    time.sleep(0.01)
fork = os.fork()
if not fork:
    os.environ["QUICK"] = "1"
    import slow_to_import
    os._exit(slow_to_import.ANSWER)
print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_fork_imports_what_another_thread_was_importing(tmp_path: Path) -> None:
    slow = "import os, time\ntime.sleep(0 if 'QUICK' in os.environ else 60)\nANSWER = 42\n"
    (tmp_path / "slow_to_import.py").write_text(slow, encoding="utf-8")
    command = [sys.executable, "-c", IMPORTING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert ("42\n", "") == (done.stdout, done.stderr)


def test_a_fork_computes_what_another_thread_was_computing() -> None:
    held = Batch.__dict__["vectors"]
    forks.prepare_forks()
    with getattr(held, "lock", threading.RLock()):  # as while a thread computes it
        copy = threading.Thread(target=in_copies, args=([partial(_take, held)], 1))
        copy.start()
        copy.join(30)
        assert not copy.is_alive()


def _take(held: Any) -> None:
    with getattr(held, "lock", threading.RLock()):
        pass

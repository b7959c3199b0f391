"""Processor time and peak memory of a step, with those of the copies of this process that worked for it."""

from __future__ import annotations

import multiprocessing
import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

import psutil

SAMPLED_SECONDS = 2.0
T = TypeVar("T")


@dataclass(frozen=True)
class Spent:
    """What a step took: processor seconds of all its threads, seconds on the clock, and the peak of resident bytes."""

    cpu: float
    clock: float
    peak: int


def spent(work: Callable[[], T]) -> tuple[T, Spent]:
    """The result of `work` and what it took. (Where Linux cannot reset it, the peak is that since the start.)"""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins the peak anew
    cpu, begun = _cpu(), time.perf_counter()
    with _with_copies() as sampled:
        result = work()
    clock = time.perf_counter() - begun
    return result, Spent(_cpu() - cpu, clock, max(peak(), *sampled))


def peak() -> int:
    """The peak of this process's resident bytes since it was last begun anew."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        if found:
            return int(found.group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _cpu() -> float:
    """Processor seconds of this process and of the processes that it started."""
    for copy in multiprocessing.active_children():
        if copy.daemon:  # a fork that has done its work
            copy.join()
    copies = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + copies.ru_utime + copies.ru_stime


@contextmanager
def _with_copies() -> Iterator[list[int]]:
    """Samples of the bytes of this process and of what its copies have beside it, taken while they run."""
    samples, over, this = [0], Event(), psutil.Process()

    def sample() -> None:
        while not over.wait(SAMPLED_SECONDS):
            with suppress(psutil.Error):
                own = [copy.memory_full_info().uss for copy in this.children()]
                samples.append(this.memory_info().rss + sum(own) if own else 0)

    thread = Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()

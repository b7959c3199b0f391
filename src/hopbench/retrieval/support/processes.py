"""Processors, threads with one BLAS thread each, and pauses of the garbage collector."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import TypeVar

from threadpoolctl import ThreadpoolController

MAX_PROCESSES = 4  # at a time: each needs memory of its own for what it makes
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # a container's: microseconds of processors in each period, or "max"

R = TypeVar("R")
T = TypeVar("T")


def usable_processors() -> int:
    """How many processes are worth their memory: a processor each, `MAX_PROCESSES` at most.

    1 where the system cannot fork safely (macOS), and in a daemonic process, which may start no other.
    """
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return 1
    return int(max(min(len(os.sched_getaffinity(0)), _quota(), MAX_PROCESSES), 1))


def _quota() -> float:
    """How many processors' time a container may use."""
    with suppress(OSError, ValueError):
        quota, period = map(int, QUOTA.read_text().split())
        return quota / period
    return inf


def end_with(parent: int) -> None:
    """End this process, one that `parent` started, when that has ended, killed perhaps; Ctrl-C is for `parent`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass
class _BlasLimit:
    """The BLAS libraries of this process, and how many threads have asked for one thread of theirs."""

    libraries: ThreadpoolController = field(default_factory=ThreadpoolController)
    holders: int = 0
    restored: ExitStack = field(default_factory=ExitStack)
    lock: threading.Lock = field(default_factory=threading.Lock)


_blas = cache(_BlasLimit)  # looked up once, which takes milliseconds


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread in all of the process, until the last of the threads that ask for it leaves.

    For products so small that its threads wait longer than they compute.
    """
    blas = _blas()
    with blas.lock:
        if blas.holders == 0:
            blas.restored.enter_context(blas.libraries.limit(limits=1, user_api="blas"))
        blas.holders += 1
    try:
        yield
    finally:
        with blas.lock:
            blas.holders -= 1
            if blas.holders == 0:
                blas.restored.close()


def in_threads(work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """Do `work` for each part, a thread for each processor; BLAS uses one thread in each."""
    with one_blas_thread(), ThreadPoolExecutor(usable_processors()) as pool:
        return list(pool.map(work, parts))


_somebody_freezes = threading.Event()  # for good: to count them walks over all, 0.1 s for a million


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector waits: it would walk over the corpus, and over all that is made from it, again and again.

    That was a third of a sweep's trial and a quarter of reading a corpus. For work that leaves no cycles behind: what
    is made meanwhile counts as old afterwards, so that the collector does not walk over it as soon as it resumes.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            if _somebody_freezes.is_set() or gc.get_freeze_count():
                _somebody_freezes.set()  # what is frozen would thaw
            else:
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()

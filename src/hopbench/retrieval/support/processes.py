"""Processors, threads with one BLAS thread each, and work without the garbage collector."""

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
from functools import cache
from pathlib import Path
from typing import TypeVar

from threadpoolctl import ThreadpoolController

MAX_PROCESSES = 4  # at a time: each needs memory of its own for what it makes
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # a container's: microseconds of processors in each period, or "max"

R = TypeVar("R")
T = TypeVar("T")


def usable_processors() -> int:
    """How many processes are worth their memory: a processor each, `MAX_PROCESSES` at most.

    1 on systems other than Linux, and in a daemonic process, which may start no other.
    """
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return 1
    processors = float(len(os.sched_getaffinity(0)))
    with suppress(OSError, ValueError):
        quota, period = map(int, QUOTA.read_text().split())
        processors = min(processors, quota / period)
    return int(max(min(processors, MAX_PROCESSES), 1))


def end_with(parent: int) -> None:
    """End this process, one that `parent` started, when that has ended, killed perhaps; Ctrl-C is for `parent`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_libraries = cache(ThreadpoolController)  # looked up once, which takes milliseconds
_lock, _holders, _limit = threading.Lock(), list[object](), ExitStack()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread in all of the process, until the last of the threads that ask for it leaves.

    For products so small that its threads wait longer than they compute.
    """
    holder = object()
    with _lock:
        if not _holders:
            _limit.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _holders.append(holder)
    try:
        yield
    finally:
        with _lock:
            _holders.remove(holder)
            if not _holders:
                _limit.close()


def in_threads(work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """Do `work` for each part, a thread for each processor; BLAS uses one thread in each."""
    with one_blas_thread(), ThreadPoolExecutor(usable_processors()) as pool:
        return list(pool.map(work, parts))


@contextmanager
def collector_off() -> Iterator[None]:
    """Work without the garbage collector, which took 40% of reading a corpus: nothing in that leaves cycles behind."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

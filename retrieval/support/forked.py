"""Work of this process done by copies of it: Python code whose inputs are too large to be sent elsewhere."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, BinaryIO, TypeVar

S = TypeVar("S")
T = TypeVar("T")

PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when the one that started it ends
MOST = 4  # copies at a time: each needs memory of its own for what it makes
PATIENCE = 10.0  # seconds for what a copy has still to do when this process has done as much


def usable_processors() -> int:
    """How many copies are worth their memory: a processor each, `MOST` at most; 1 where the system cannot fork safely.

    (macOS's own libraries do not survive it; a daemonic process may start no other.)
    """
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return 1
    return min(len(os.sched_getaffinity(0)), MOST)


def in_copies(works: Iterable[Callable[[], object]], copies: int) -> None:
    """Do each work in a fork of this process, at most `copies` at a time; what works return or raise is lost.

    So they leave files behind, and the caller does what is still missing, in its own process and with its own errors.
    A fork shares this process's memory and copies the pages that it writes to (Python counts references there): a
    fork for each work keeps those few.
    """
    running: list[ForkProcess] = []
    context = multiprocessing.get_context("fork")
    try:
        for work in works:
            while len(running) >= copies:  # a copy that ends says so a moment before it has ended
                wait([copy.sentinel for copy in running])
                running = [copy for copy in running if copy.is_alive()]
            copy = context.Process(target=_done, args=(work, os.getpid()), daemon=True)
            copy.start()
            running.append(copy)
        for copy in running:
            copy.join()
    finally:
        for copy in running:
            copy.terminate()


def beside_copies(work: Callable[[S], T], shares: Sequence[S], known: Sequence[object] = ()) -> Iterator[T]:
    """What `work` returns for each share, in their order: the first done here, each other in a fork of this process.

    A fork leaves what came of its share, but for the objects `known` (by identity) to both. What a fork could not do or
    did not leave in time is done here: it may have waited for a lock that another thread held when it was made.
    """
    begun, copies = time.monotonic(), [_Copy.begun(partial(work, share), known) for share in shares[1:]]
    try:
        yield from (work(share) for share in shares[:1])
        last = 2 * time.monotonic() - begun + PATIENCE
        for share, copy in zip(shares[1:], copies, strict=True):
            left = copy.left(last - time.monotonic()) if copy else []
            yield left[0] if left else work(share)
    finally:
        for copy in filter(None, copies):
            copy.end()


class _Copy:
    """A fork that leaves what its work returned in memory that both share."""

    def __init__(self, work: Callable[[], object], known: Sequence[object], memory: BinaryIO) -> None:
        context = multiprocessing.get_context("fork")
        self._known, self._memory = known, memory
        self._finished, finished = context.Pipe(duplex=False)
        with finished:
            leave = partial(_leave, work, known, memory, finished)
            self._process = context.Process(target=_done, args=(leave, os.getpid()), daemon=True)
            self._process.start()

    @classmethod
    def begun(cls, work: Callable[[], object], known: Sequence[object]) -> _Copy | None:
        """A fork at work; None where the system allows no further process."""
        with suppress(OSError), ExitStack() as opened:
            memory = opened.enter_context(os.fdopen(os.memfd_create("hopbench"), "w+b"))
            copy = cls(work, known, memory)
            opened.pop_all()  # stays open, until the copy's end
            return copy
        return None

    def left(self, seconds: float) -> list[Any]:
        """What was returned, alone in a list; nothing where the work failed or takes longer."""
        with suppress(EOFError, OSError):
            if self._finished.poll(max(seconds, 0.0)) and self._finished.recv_bytes():
                self._memory.seek(0)
                return [_Unpickler(self._known, self._memory).load()]
        return []

    def end(self) -> None:
        """End the fork, whatever it does."""
        self._finished.close()
        self._memory.close()
        self._process.kill()
        self._process.join()


def _leave(work: Callable[[], object], known: Sequence[object], memory: BinaryIO, finished: Connection) -> None:
    gc.disable()  # it would write to every object of the process, and so copy all its pages
    _Pickler(known, memory).dump(work())
    memory.flush()
    finished.send_bytes(b"finished")


class _Pickler(pickle.Pickler):
    """Writes known objects as their places."""

    def __init__(self, known: Sequence[object], file: BinaryIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(one): place for place, one in enumerate(known)}

    def persistent_id(self, obj: object) -> int | None:
        return self._places.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote in a fork of this process."""

    def __init__(self, known: Sequence[object], file: BinaryIO) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, pid: int) -> object:
        return self._known[pid]


def _done(work: Callable[[], object], parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # however that process ends
    if os.getppid() != parent:
        return
    with suppress(Exception):
        work()

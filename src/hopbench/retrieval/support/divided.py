"""Work done by forks of this process: their inputs are too large to be sent, or cannot be (memory maps)."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, cached_property, partial
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

import numpy as np

from hopbench.retrieval.support.processes import usable_processors

PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when the one that started it ends
S = TypeVar("S")
T = TypeVar("T")

PATIENCE = 10.0  # seconds for what a fork has still to do when this process has done as much
PIPE = 1 << 20  # bytes that Linux lets everybody ask for: some MB are sent in a third of the time that 64 kB take
MOST_PARTS = 16_384  # 4 bytes each, in a pipe of 64 kB
_log = logging.getLogger(__name__)


def divided(work: Callable[[S], T], parts: Sequence[S], processes: int) -> Generator[tuple[int, T]]:
    """What `work` returns for each part, with the part's number, as parts get done, by so many processes.

    They are this one and forks of it, which need nothing sent to them; this one alone where the system cannot fork
    safely. Each takes the next part when it has done one, and a fork sends what came of it meanwhile. What a fork could
    not do or did not send in time is done here: it may have waited for a lock that another thread held when it was
    made. (An executor of `concurrent.futures` would wait for it for ever.) Close the iterator to end the forks.
    """
    begun, missing, forks = time.monotonic(), set(range(len(parts))), list[_Fork]()
    with _Turns(len(parts)) as turns:
        mine = ((number, work(parts[number])) for number in turns)
        try:
            for _ in range(min(processes, usable_processors()) - 1):
                with suppress(OSError):  # where the system allows no further process
                    forks.append(_Fork(mine))
            for one in mine:
                for number, result in chain([one], *(fork.sent() for fork in forks)):
                    missing.remove(number)
                    yield number, result
            last = 2 * time.monotonic() - begun + PATIENCE
            for number, result in chain.from_iterable(fork.sent(last) for fork in forks):
                missing.remove(number)
                yield number, result
        finally:
            for fork in forks:
                fork.end()
    if missing:
        _log.warning("a fork of this process did not finish its share of the work; it is done again here")
    yield from ((number, work(parts[number])) for number in sorted(missing))


class _Turns:
    """The numbers below a count, each given once, to this process or to a fork. ValueError where a pipe is full.

    Without a lock, which a fork that is killed might hold.
    """

    def __init__(self, count: int) -> None:
        if count > MOST_PARTS:
            raise ValueError(f"{count:,} parts; a pipe holds the numbers of {MOST_PARTS:,}: make fewer, larger ones")
        self._reads, writes = os.pipe()
        os.write(writes, np.arange(count, dtype=np.int32).tobytes())
        os.close(writes)

    def __iter__(self) -> Iterator[int]:
        while number := os.read(self._reads, 4):
            yield int(np.frombuffer(number, np.int32)[0])

    def __enter__(self) -> Iterator[int]:
        return iter(self)

    def __exit__(self, *_: object) -> None:
        os.close(self._reads)


class _Fork:
    """A fork that goes through an iterable and sends each of its values, then that there are no more."""

    def __init__(self, work: Iterable[object]) -> None:
        self._over = False
        self._receives, sends = multiprocessing.Pipe(duplex=False)
        with sends:
            with suppress(OSError):
                fcntl.fcntl(sends.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
            self._process = begun_copy(partial(_send, work, sends))

    def sent(self, last: float = 0.0) -> Iterator[Any]:
        """What can be read by now, or until a time of the monotonic clock, up to what cannot be read."""
        with suppress(Exception):  # whatever it is: the work is done again, with errors of its own
            while not self._over and self._receives.poll(max(last - time.monotonic(), 0.0)):
                sent = self._receives.recv()
                self._over = sent is None
                if sent is not None:
                    yield sent

    def end(self) -> None:
        """End the fork, whatever it does; one that has sent all is not waited for: to give back GBs takes it .1 s."""
        self._receives.close()
        self._process.kill()
        if not self._over:
            self._process.join()


def _send(work: Iterable[object], connection: Connection) -> None:
    gc.disable()  # it would write to every object of the process, and so copy all its pages
    with ThreadPoolExecutor(1) as sender:  # a pipe that is full keeps its thread waiting, and not the work
        for one in chain(work, [None]):
            sender.submit(connection.send_bytes, ForkingPickler.dumps(one))
    if parent := multiprocessing.parent_process():
        parent.join()  # until it ends this one: to give back memory meanwhile stops a process that shares it


@cache
def prepare_forks() -> None:
    """Have forks of this process wait for no lock of Python's that another thread held; once is enough.

    A fork does not have the threads that would release them.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_imports_of_other_threads)
        os.register_at_fork(after_in_child=_renew_property_locks)


def _renew_property_locks() -> None:
    """Give our cached properties new locks: Python 3.11 has one for each, which another thread may hold."""
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("hopbench.")]
    for kind in (value for module in ours for value in list(vars(module).values()) if isinstance(value, type)):
        for attribute in vars(kind).values():
            if isinstance(attribute, cached_property) and hasattr(attribute, "lock"):
                attribute.lock = threading.RLock()


def _forget_imports_of_other_threads() -> None:
    """Import anew what another thread was importing: Python keeps a lock for each such module."""
    locks = getattr(importlib._bootstrap, "_module_locks", {})  # there is no public way
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner not in (None, threading.get_ident()):
            locks.pop(name, None)
            sys.modules.pop(name, None)


def begun_copy(work: Callable[[], object]) -> ForkProcess:
    """A fork of this process that does some work and ends, at the latest with this process or with `terminate`."""
    prepare_forks()
    copy = multiprocessing.get_context("fork").Process(target=_done, args=(work, os.getpid()), daemon=True)
    copy.start()
    return copy


def in_copies(works: Iterable[Callable[[], object]], copies: int) -> None:
    """Do each work in a fork of this process, at most `copies` at a time; what works return or raise is lost.

    So they leave files behind, and the caller does what is still missing, in its own process and with its own errors.
    A fork shares this process's memory and copies the pages that it writes to (Python counts references there): a
    fork for each work keeps those few.
    """
    running: list[ForkProcess] = []
    try:
        for work in works:
            while len(running) >= copies:  # a copy that ends says so a moment before it has ended
                wait([copy.sentinel for copy in running])
                running = [copy for copy in running if copy.is_alive()]
            running.append(begun_copy(work))
        for copy in running:
            copy.join()
    finally:
        for copy in running:
            copy.terminate()


def _done(work: Callable[[], object], parent: int) -> None:
    signal.set_wakeup_fd(-1)  # an event loop of the process that started it waits for signals there
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that process ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # however that process ends
    if os.getppid() != parent:
        return
    with suppress(Exception):
        work()

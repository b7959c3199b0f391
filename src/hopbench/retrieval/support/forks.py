"""Work done by forks of this process: their inputs are too large to be sent, or cannot be (memory maps)."""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, cached_property
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess

PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when the one that started it ends


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

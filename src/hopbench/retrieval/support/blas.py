"""How many threads BLAS uses: one, where products are so small that its threads wait longer than they compute.

Many such products are divided among threads of Python instead, which NumPy lets run side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

R = TypeVar("R")
T = TypeVar("T")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread within: in all of the process, until the last of the threads that ask for it leaves."""
    _limit().enter()
    try:
        yield
    finally:
        _limit().leave()


def in_threads(work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """What `work` returns for each part, done on as many threads as BLAS has; BLAS itself then uses one in each."""
    listed = list(parts)
    threads = min(_limit().threads(), len(listed))
    with one_blas_thread():
        if threads < 2:
            return [work(part) for part in listed]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, listed))


@dataclass
class _Limit:
    """The BLAS libraries that are loaded by now, NumPy's among them, and how many ask for one thread of theirs."""

    libraries: ThreadpoolController = field(default_factory=ThreadpoolController)
    entered: int = 0
    restored: ExitStack = field(default_factory=ExitStack)
    lock: Lock = field(default_factory=Lock)

    def enter(self) -> None:
        with self.lock:
            if self.entered == 0:
                self.restored.enter_context(self.libraries.limit(limits=1, user_api="blas"))
            self.entered += 1

    def leave(self) -> None:
        with self.lock:
            self.entered -= 1
            if self.entered == 0:
                self.restored.close()

    def threads(self) -> int:
        """How many threads BLAS uses now: of several libraries, the fewest, since not each knows the user's setting."""
        return min((each["num_threads"] for each in self.libraries.info() if each["user_api"] == "blas"), default=1)


@cache
def _limit() -> _Limit:
    """Looked up once, which takes milliseconds. A fork gets a lock of its own: a thread that it lacks may hold this."""
    limit = _Limit()
    os.register_at_fork(after_in_child=lambda: setattr(limit, "lock", Lock()))
    return limit

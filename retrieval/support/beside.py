"""Work divided among this process and forks of it, which send what came of their shares."""

from __future__ import annotations

import fcntl
import gc
import logging
import multiprocessing
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from hopbench.retrieval.support.forked import begun_copy, usable_processors

S = TypeVar("S")
T = TypeVar("T")

PATIENCE = 10.0  # seconds for what a copy has still to do when this process has done as much
PIPE = 1 << 20  # bytes that Linux lets everybody ask for: some MB are sent in a third of the time that 64 kB take
_log = logging.getLogger(__name__)


def beside_copies(work: Callable[[S], T], shares: Sequence[S]) -> Generator[T]:
    """What `work` returns for each share, in their order: the first done here, each other in a fork of this process.

    All are done here where the system cannot fork safely. What a fork could not do or did not send in time is done
    here: it may have waited for a lock that another thread held when it was made. Close the iterator to end the forks.
    """
    begun, copies = time.monotonic(), list[_Copy | None]()
    try:
        for share in shares[1:] if usable_processors() > 1 else ():
            copies.append(_Copy.begun(partial(work, share)))
        yield from (work(share) for share in shares[: len(shares) - len(copies)])
        last = 2 * time.monotonic() - begun + PATIENCE
        for copy, share in zip(copies, shares[1:], strict=False):
            sent = copy.sent(last - time.monotonic()) if copy else []
            if not sent:
                _log.warning("a fork of this process did not finish its share of the work; it is done again here")
            yield sent[0] if sent else work(share)
    finally:
        for copy in filter(None, copies):
            copy.end()


class _Copy:
    """A fork that sends what its work returned."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._receives, sends = multiprocessing.Pipe(duplex=False)
        with sends:
            with suppress(OSError):
                fcntl.fcntl(sends.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
            self._process = begun_copy(partial(_send, work, sends))

    @classmethod
    def begun(cls, work: Callable[[], object]) -> _Copy | None:
        """A fork at work; None where the system allows no further process."""
        with suppress(OSError):
            return cls(work)
        return None

    def sent(self, seconds: float) -> list[Any]:
        """What was returned, alone in a list; nothing where the work failed or takes longer."""
        with suppress(Exception):  # whatever it is: the work is done again, with errors of its own
            if self._receives.poll(max(seconds, 0.0)):
                return [self._receives.recv()]
        return []

    def end(self) -> None:
        """End the fork, whatever it does."""
        self._receives.close()
        self._process.kill()
        self._process.join()


def _send(work: Callable[[], object], connection: Connection) -> None:
    gc.disable()  # it would write to every object of the process, and so copy all its pages
    connection.send(work())

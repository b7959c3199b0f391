"""Work divided among this process and forks of it, which send what came of their shares."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import pickle
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

from hopbench.retrieval.support.forked import begun_copy, usable_processors

S = TypeVar("S")
T = TypeVar("T")

PATIENCE = 10.0  # seconds for what a copy has still to do when this process has done as much
_log = logging.getLogger(__name__)


def beside_copies(work: Callable[[S], T], shares: Sequence[S], known: Sequence[object] = ()) -> Generator[T]:
    """What `work` returns for each share, in their order: the first done here, each other in a fork of this process.

    All are done here where the system cannot fork safely. A fork sends what came of its share, but for the objects
    `known` (by identity) to both. What a fork could not do or did not send in time is done here: it may have waited for
    a lock that another thread held when it was made. Close the iterator to end the forks.
    """
    begun, copies = time.monotonic(), list[_Copy | None]()
    try:
        for share in shares[1:] if usable_processors() > 1 else ():
            copies.append(_Copy.begun(partial(work, share), known))
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
    """A fork that writes what its work returned into a file without a name."""

    def __init__(self, work: Callable[[], object], known: Sequence[object], file: IO[bytes]) -> None:
        self._known, self._file = known, file
        self._written, written = multiprocessing.Pipe(duplex=False)
        with written:
            self._process = begun_copy(partial(_write, work, known, file, written))

    @classmethod
    def begun(cls, work: Callable[[], object], known: Sequence[object]) -> _Copy | None:
        """A fork at work; None where the system allows no further process or file."""
        with suppress(OSError), ExitStack() as opened:
            copy = cls(work, known, opened.enter_context(TemporaryFile()))
            opened.pop_all()  # open until the copy's end
            return copy
        return None

    def sent(self, seconds: float) -> list[Any]:
        """What was returned, alone in a list; nothing where the work failed or takes longer."""
        with suppress(Exception):  # whatever it is: the work is done again, with errors of its own
            if self._written.poll(max(seconds, 0.0)) and self._written.recv_bytes():
                self._file.seek(0)
                return [_Unpickler(self._known, self._file).load()]
        return []

    def end(self) -> None:
        """End the fork, whatever it does."""
        self._written.close()
        self._file.close()
        self._process.kill()
        self._process.join()


def _write(work: Callable[[], object], known: Sequence[object], file: IO[bytes], written: Connection) -> None:
    gc.disable()  # it would write to every object of the process, and so copy all its pages
    _Pickler(known, file).dump(work())
    file.flush()
    written.send_bytes(b"written")


class _Pickler(pickle.Pickler):
    """Writes known objects as their places."""

    def __init__(self, known: Sequence[object], file: IO[bytes]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(one): place for place, one in enumerate(known)}

    def persistent_id(self, obj: object) -> int | None:
        return self._places.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote in a fork of this process."""

    def __init__(self, known: Sequence[object], file: IO[bytes]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, pid: int) -> object:
        return self._known[pid]

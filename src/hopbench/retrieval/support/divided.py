"""Work divided among this process and forks of it, which send what came of their shares."""

from __future__ import annotations

import fcntl
import gc
import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

import numpy as np

from hopbench.retrieval.support.forked import begun_copy, usable_processors

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

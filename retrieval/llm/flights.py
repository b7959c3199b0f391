"""Which process is at which call: of two that share a cache, the second waits for the first one's reply.

A call in flight is a locked file beside the cache; the system releases it however its process ends.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hopbench.retrieval.support.locking import open_lock

LOOK_SECONDS = 0.1


class Flights:
    """Calls in flight, `at_once` of this process; `folder` is shared by all processes."""

    def __init__(self, folder: Path, at_once: int) -> None:
        self._folder = folder
        self._seats = asyncio.Semaphore(at_once)  # each is an open file, and a call that others wait for

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncIterator[None]:
        """Wait until no other process is at the call, which may have its reply by then."""
        path = self._folder / f"{key}.flight"
        async with self._seats:
            while True:
                with open_lock(path) as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        pass
                    else:
                        try:
                            yield
                        finally:
                            # One that still waits at this file finds the reply; without one each asks for itself.
                            path.unlink(missing_ok=True)
                        return
                await asyncio.sleep(LOOK_SECONDS)

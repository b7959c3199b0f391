"""Locks between processes of one machine; the system releases them however the holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold `path` as a lock; the file stays."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive_and_gone(path: Path) -> Iterator[None]:
    """Hold `path` as a lock and remove the file at the end, for locks of which there are many."""
    while True:
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _still(path, lock):
                continue  # its last holder removed it while we waited: what we hold is no lock for others
            try:
                yield
            finally:
                path.unlink()
            return


def _still(path: Path, lock: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False

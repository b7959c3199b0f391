"""Locks between processes of one machine; the system releases them however the holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice


def open_lock(path: Path, mode: str = "w") -> IO[str]:
    """Open the file of a lock. An empty folder in its place is removed; raises InputError for a full one."""
    try:
        return path.open(mode, encoding="utf-8")
    except IsADirectoryError:
        _remove_empty(path)
        return path.open(mode, encoding="utf-8")


def _remove_empty(path: Path) -> None:
    try:
        path.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(
            f"{path}: a folder stands where a lock file belongs ({error.strerror}): move it away, and run again"
        ) from error
    notice(f"{path}: an empty folder stood where a lock file belongs, and was removed")


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold `path` as a lock; the file stays."""
    with open_lock(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive_and_gone(path: Path) -> Iterator[None]:
    """Hold `path` as a lock and remove the file at the end, for locks of which there are many."""
    while True:
        with open_lock(path) as lock:
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

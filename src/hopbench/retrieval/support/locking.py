"""Locks between processes of one machine, by `filelock`; the system releases them however their holder ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from filelock import FileLock

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice

POLL_SECONDS = 0.02  # between two attempts at a lock that another process holds


def process_lock(path: Path) -> FileLock:
    """A lock on the file `path`, not yet acquired; threads of one process exclude each other too.

    An empty folder in the file's place is removed; raises InputError for one that is not empty.
    """
    if path.is_dir():
        _remove_empty(path)
    # A file system without flock fails: the fallback, a file that exists, would outlive a killed holder.
    return FileLock(path, poll_interval=POLL_SECONDS, fallback_to_soft=False)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold `path` as a lock, waiting for it; the file stays."""
    with process_lock(path):
        yield


@contextmanager
def exclusive_and_gone(path: Path) -> Iterator[None]:
    """Hold `path` as a lock and remove the file at the end, for locks of which there are many.

    A process that waited for the removed file notices that, and locks a new one.
    """
    with process_lock(path):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def open_lock(path: Path, mode: str = "w") -> IO[str]:
    """Open a lock's file for a caller that locks it by `fcntl` and writes into it; otherwise as `process_lock`."""
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

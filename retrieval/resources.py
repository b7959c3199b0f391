"""When the machine has no more of something: one message that says what, and that the same command goes on."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from retrieval.errors import HopBenchError, IncompleteError

GOES_ON = "What is finished is kept, and the same command goes on"
DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_DEPTH = 20  # causes that are looked through


def out_of_room(error: BaseException) -> bool:
    """Whether a disk is full, or a limit on the size of files is reached."""
    if isinstance(error, sqlite3.OperationalError):
        return "full" in str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in DISK
    return any(os.strerror(code) in str(error) for code in DISK)  # as libraries of other languages hand it on


def exhausted(error: BaseException, place: Path | str = "") -> IncompleteError | None:
    """The error to raise where `error`, or what caused it, is a lack of disk, memory, threads or open files; else None.

    `place` is the file that was being written, where the error itself names none.
    """
    for one in _causes(error):
        if out_of_room(one):
            where = getattr(one, "filename", None) or place
            at = f" for {where}" if where else ""
            return IncompleteError(
                f"the disk is full{at}: free some, or name a folder on another disk (HOPBENCH_HOME, --out). {GOES_ON}"
            )
        if isinstance(one, MemoryError) or (isinstance(one, OSError) and one.errno == errno.ENOMEM):
            return IncompleteError(
                "the memory is used up: end other programs, raise the limit (ulimit -v), or run fewer at once "
                f"(--workers, --limit). {GOES_ON}"
            )
        if (isinstance(one, RuntimeError) and "can't start new thread" in str(one)) or _no_fork(one):
            return IncompleteError(
                "the system starts no more threads or processes: end other programs, or raise the limit (ulimit -u). "
                f"{GOES_ON}"
            )
        if isinstance(one, OSError) and one.errno in _FILES:
            return IncompleteError(
                f"too many files are open: end other programs, or raise the limit (ulimit -n). {GOES_ON}"
            )
    return None


def _no_fork(error: BaseException) -> bool:
    return isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN and error.filename is None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it came from, members of groups included; an error of ours has said what it is."""
    left, seen = [error], 0
    while left and seen < _DEPTH:
        one, seen = left.pop(0), seen + 1
        yield one
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        if isinstance(one, HopBenchError) and one is not error:
            continue
        left += [cause for cause in (one.__cause__, one.__context__) if cause is not None]

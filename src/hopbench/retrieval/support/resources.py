"""Exhausted resources: one message that names the resource and says that the same command continues."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hopbench.retrieval.support.errors import HopBenchError, IncompleteError

GOES_ON = "What is finished is kept, and the same command goes on"
DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FILES = frozenset({errno.EMFILE, errno.ENFILE})
PROBE_BYTES = 256 * 1024
_DEPTH = 20  # causes that are looked through


_MESSAGES = {  # what systems and libraries say of each lack, for where only their words arrive
    "disk": (*map(os.strerror, DISK), "database or disk is full"),
    "memory": (os.strerror(errno.ENOMEM), "MemoryError", "std::bad_alloc", "out of memory"),
    "threads": ("can't start new thread",),
    "files": tuple(map(os.strerror, _FILES)),
}
_REMEDIES = {
    "disk": "the disk is full{at}: free some, or name a folder on another disk (HOPBENCH_HOME, --out)",
    "memory": "the memory is used up: end other programs, raise the limit (ulimit -v), or run fewer at once "
    "(--workers, --limit)",
    "threads": "the system starts no more threads or processes: end other programs, or raise the limit (ulimit -u)",
    "files": "too many files are open: end other programs, or raise the limit (ulimit -n)",
}


def exhausted(error: BaseException, place: Path | str = "") -> IncompleteError | None:
    """The error to raise where `error`, or what caused it, is a lack of disk, memory, threads or open files; else None.

    `place` is the file that was being written, where the error itself names none.
    """
    for cause in _causes(error):
        lack = _lack(cause)
        if lack is not None:
            return _error(lack, getattr(cause, "filename", None) or place)
    return None


def exhausted_by_message(text: str, place: Path | str = "") -> IncompleteError | None:
    """The same for the message of another process."""
    lack = _lack_in(text)
    return None if lack is None else _error(lack, place)


def full(folder: Path) -> IncompleteError | None:
    """The error to raise if nothing more can be written to a folder, else None: a process may end so without a word."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        return exhausted(error, folder)
    return None


def _error(lack: str, place: object) -> IncompleteError:
    return IncompleteError(f"{_REMEDIES[lack].format(at=f' for {place}' if place else '')}. {GOES_ON}")


def _lack_in(text: str) -> str | None:
    return next((lack for lack, words in _MESSAGES.items() if any(word in text for word in words)), None)


def _lack(error: BaseException) -> str | None:
    """The exhausted resource, by the error's type and code, else by its message; None if there is none."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, BlockingIOError):
        return "threads" if _no_fork(error) else None
    if isinstance(error, HopBenchError):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        codes = {**dict.fromkeys(DISK, "disk"), **dict.fromkeys(_FILES, "files"), errno.ENOMEM: "memory"}
        return codes.get(error.errno)
    return _lack_in(str(error))


def _no_fork(error: BaseException) -> bool:
    return isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN and error.filename is None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, members of groups included; the causes of our own errors are skipped."""
    left, seen = [error], 0
    while left and seen < _DEPTH:
        current, seen = left.pop(0), seen + 1
        yield current
        if isinstance(current, BaseExceptionGroup):
            left += current.exceptions
        if isinstance(current, HopBenchError) and current is not error:
            continue
        left += [cause for cause in (current.__cause__, current.__context__) if cause is not None]

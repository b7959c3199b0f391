"""Errors a user can act on: each names what was wrong, the value, the limit and the remedy.

The command line prints the message of a `HopBenchError` without a traceback and exits with its `exit_code`.
Anything else that escapes is a defect of the program and keeps its traceback (exit code 1). `exhausted` makes one of a
lack of disk, memory, threads or open files, and says that the same command continues.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from copyreg import __newobj__  # type: ignore[attr-defined]  # what pickle itself makes an object by
from pathlib import Path
from typing import Any

_WORDS = re.compile(r"[^\W_]+")
SHORTEST = 4  # a shorter beginning of a name does not say which name is meant


class HopBenchError(Exception):
    """Base of every error that HopBench raises on purpose."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """As its message and attributes: a constructor that takes other arguments is not called again."""
        return __newobj__, (type(self), *self.args), self.__dict__


class InputError(HopBenchError):
    """A file, flag, parameter or environment variable that cannot be used as given."""

    exit_code = 2


class ParameterError(InputError):
    """A strategy or build parameter outside its bounds."""


class UnknownNameError(InputError):
    """An unknown name; the message lists all known ones and suggests the one that may have been meant.

    `also` are names that are known too and not listed.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> None:
        names = sorted(known)
        near = closest_name(name, [*names, *also])
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}")


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the optional packages of {extra!r}: pip install 'hopbench[{extra}]'")


class RegressionError(HopBenchError):
    """A nightly run is significantly worse than the run it is compared with."""

    exit_code = 3


class TargetError(HopBenchError):
    """A figure misses a target that it was to keep."""

    exit_code = 3


class IncompleteError(HopBenchError):
    """The work stopped before its end and can be continued by the same command."""

    exit_code = 4


class StrategyError(HopBenchError):
    """A strategy failed on a question that a program asked it."""


class StoreError(HopBenchError):
    """The graph store refused, failed or is gone; finished work is saved."""

    exit_code = 4


class DamagedGraphError(StoreError):
    """The file of an embedded graph does not read as it was written; it can be built again."""


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` misspells: the fewest edits, then the same letters; None without one.

    >>> closest_name("max_dpeth", ["max_depth", "max_tags"])
    'max_depth'
    >>> closest_name("similarity_threshold", ["synonym_threshold"]) is None
    True
    """
    candidates = [
        (distance, sorted(candidate) != sorted(name), candidate)
        for candidate in known
        if (distance := _distance(name.lower(), candidate.lower())) is not None
    ]
    return min(candidates)[2] if candidates else None


def _distance(name: str, known: str) -> int | None:
    """Edits between two spellings of one name, None where they are two names.

    Names are read word by word, so that no word is taken for another: `max_entities` does not mean `min_entities`.
    """
    from rapidfuzz.distance import OSA

    ours, theirs = _WORDS.findall(name), _WORDS.findall(known)
    if len(ours) != len(theirs):  # "maxdepth", "page_rank"
        ours, theirs = ["".join(ours)], ["".join(theirs)]
    edits = [OSA.distance(one, other) for one, other in zip(ours, theirs, strict=True)]
    slips = [max(1, max(len(one), len(other)) // 4) for one, other in zip(ours, theirs, strict=True)]
    if all(edit <= slip for edit, slip in zip(edits, slips, strict=True)):
        return sum(edits)
    shorter, longer = sorted((name, known), key=len)
    cut = longer.startswith(shorter) and len(shorter) >= max(SHORTEST, len(longer) / 2)
    return len(longer) - len(shorter) if cut else None


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
    left, seen = [error], 0
    while left and seen < _DEPTH:
        cause, seen = left.pop(0), seen + 1
        lack = _lack(cause)
        if lack is not None:
            return _error(lack, getattr(cause, "filename", None) or place)
        if isinstance(cause, BaseExceptionGroup):
            left += cause.exceptions
        if cause is error or not isinstance(cause, HopBenchError):  # our own errors have named their causes
            left += [each for each in (cause.__cause__, cause.__context__) if each is not None]
    return None


def exhausted_by_message(text: str, place: Path | str = "") -> IncompleteError | None:
    """The same for the message of another process."""
    lack = _lack_in(text)
    return None if lack is None else _error(lack, place)


def full(folder: Path) -> IncompleteError | None:
    """The error to raise if nothing more can be written to a folder, else None: a process may end so without a word."""
    import tempfile

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
        return "threads" if error.errno == errno.EAGAIN and error.filename is None else None
    if isinstance(error, HopBenchError):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        codes = {**dict.fromkeys(DISK, "disk"), **dict.fromkeys(_FILES, "files"), errno.ENOMEM: "memory"}
        return codes.get(error.errno)
    return _lack_in(str(error))

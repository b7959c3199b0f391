"""Pages of files mapped into memory: which of them the system is asked for, and when this process gives them back.

A page that is met before it is in memory is waited for, and the system reads what lies around it as well: some hundred
kilobytes, for which it gives back pages that are in use. What is known to be read is therefore asked for together,
and the disk reads it side by side.

How a file got into memory decides how fast it is used from then on. Linux can keep a file in pages of 2 MB, each met
once and found by one entry of the processor's tables; what was asked for in small pieces stays in pages of 4 kB for as
long as it is in memory, for all processes.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.support.timing import done_once

MANY = 100  # questions of a batch for which whole files are read
AT_A_TIME = 1 << 17  # bytes: of more, Linux reads what it would read ahead by itself, and leaves the rest
_PAGE = mmap.PAGESIZE
_NEEDED = getattr(mmap, "MADV_WILLNEED", None)  # None on systems without it
_POPULATE = 22 if sys.platform == "linux" else None  # MADV_POPULATE_READ, since Linux 5.14; `mmap` has no name for it
_IN_LARGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)
_LARGE_PAGE = 1 << 21  # bytes
_UNNEEDED = getattr(mmap, "MADV_DONTNEED", None) if sys.platform == "linux" else None  # elsewhere only advice
_maps: WeakSet[mmap.mmap] = WeakSet()  # those that `give_back_pages` is for
_asked: MutableMapping[mmap.mmap, NDArray[np.bool_]] = WeakKeyDictionary()  # the pages of a map that were asked for
_read: WeakSet[mmap.mmap] = WeakSet()  # those that were asked for as a whole
_read_for_now: WeakSet[mmap.mmap] = WeakSet()  # the same, until pages are given back
_whole: ContextVar[bool] = ContextVar("whole_files", default=False)


def register(held: mmap.mmap) -> None:
    """Let `give_back_memory` and `give_back_pages` take the pages of this map."""
    _maps.add(held)


def give_back_memory() -> None:
    """Take the pages of mapped files, and what the heap has free, out of this process's memory.

    It is for after work that has read whole files. The system keeps them in its cache while it has memory for them, and
    the process gets those pages back that it meets. Cycles are collected before: while strategies rank, nobody does it.
    """
    gc.collect()
    with suppress(OSError, AttributeError):  # glibc's alone
        ctypes.CDLL(None).malloc_trim(0)
    give_back_pages()


def give_back_pages(least: int = 0) -> None:
    """Take the pages of mapped files out of this process's memory; the heap keeps what it has free.

    Not those of files that have fewer than `least` bytes together.
    """
    if _UNNEEDED is not None:
        maps = _present(_maps)
        if sum(map(len, maps)) >= least:
            for held in maps:
                held.madvise(_UNNEEDED)
            # By the time that somebody reads them again the system may have dropped them.
            _asked.clear()
            _read_for_now.clear()


def forget_written(file: Path) -> None:
    """Have the system write a file out and drop it from its cache: what was written is there in pages of 4 kB.

    Read again it may be in larger ones. A file that is shorter than one of them stays as it is. Raises OSError where
    the file cannot be written out.
    """
    if hasattr(os, "posix_fadvise") and file.stat().st_size >= _LARGE_PAGE:
        with file.open("rb") as written:
            os.fsync(written.fileno())
            with suppress(OSError):  # only advice
                os.posix_fadvise(written.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ask_for_bytes(held: mmap.mmap, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Have the system read short parts of a map: the page where each begins and the one where it ends, each once.

    Not of one that was read as a whole.
    """
    if held in _read or held in _read_for_now:
        return
    asked = _pages(held)
    pages = np.concatenate([begins, ends - 1]).clip(0, len(held) - 1) // _PAGE  # of an empty part one page at its side
    new = distinct(pages[~asked[pages]])
    asked[new] = True
    _need(held, (new * _PAGE).tolist(), _PAGE)


@contextmanager
def reading_whole_files(questions: int) -> Iterator[None]:
    """Within, `read_maps` reads: for a batch of so many questions, unless these are too few to need whole files."""
    token = _whole.set(questions >= MANY)
    try:
        yield
    finally:
        _whole.reset(token)


def read_maps(maps: Sequence[mmap.mmap]) -> bool:
    """Have the system read maps as a whole, which is work done once for an index; False where it is not.

    (It is for `reading_whole_files` to say.)
    """
    if not _whole.get():
        return False
    _read.update(maps)
    _read_and_touch(maps)
    return True


def read_maps_for_now(maps: Iterable[mmap.mmap]) -> None:
    """`read_maps` of what some strategies alone need: after `give_back_pages` the next of them reads it again.

    `read_whole_again` does not: where memory is short it would drive out what others need.
    """
    if _whole.get():
        new = [held for held in maps if held not in _read_for_now]
        _read_for_now.update(new)
        _read_and_touch(new)


def read_whole_again() -> None:
    """Have the system read again what `read_maps` has read: it may have dropped that while something was made.

    Into its cache alone: the process gets those pages that it meets.
    """
    if _whole.get() and _UNNEEDED is not None:
        with done_once():
            for held in _present(_read):
                _read_now(held)
                held.madvise(_UNNEEDED)


def _present(maps: WeakSet[mmap.mmap]) -> list[mmap.mmap]:
    """The maps of a set; none where another thread maps a file meanwhile, for what they are for is only advice."""
    with suppress(RuntimeError):
        return list(maps)
    return []


def _read_and_touch(maps: Sequence[mmap.mmap]) -> None:
    """Read maps as a whole, wait for them, and count that as work done once."""
    with done_once():
        for held in maps:
            _asked.pop(held, None)
            _read_now(held)
        for held in maps:  # a virtual machine gets memory when it is touched
            _ = np.frombuffer(held, np.uint8)[::_PAGE].max()


def _read_now(held: mmap.mmap) -> None:
    if not _populate(held):
        _need(held, range(0, len(held), AT_A_TIME), AT_A_TIME)


def _populate(held: mmap.mmap) -> bool:
    """Have the system read a map as a whole, in large pages if it has such, for this process; whether it can."""
    if _IN_LARGE_PAGES is not None and len(held) >= _LARGE_PAGE:
        with suppress(OSError):  # a system without them
            held.madvise(_IN_LARGE_PAGES)
    if _POPULATE is not None:
        with suppress(OSError):  # an older system
            held.madvise(_POPULATE)
            return True
    return False


def _pages(held: mmap.mmap) -> NDArray[np.bool_]:
    """Which pages of a map were asked for."""
    if (asked := _asked.get(held)) is None:
        asked = _asked[held] = np.zeros(-(-len(held) // _PAGE), bool)
    return asked


def _need(held: mmap.mmap, begins: Iterable[int], length: int) -> None:
    """Have the system read parts of a map, the last one up to its end."""
    if _NEEDED is not None:
        with suppress(OSError):  # advice: what is not read now is read when it is met
            for begin in begins:
                held.madvise(_NEEDED, begin, length)

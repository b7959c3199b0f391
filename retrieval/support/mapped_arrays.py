"""Arrays of NumPy's files, mapped into memory: processes that map the same file share its pages."""

from __future__ import annotations

import mmap
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 28  # bytes; of a smaller array a run soon has read all


def mapped_array(file: Path) -> NDArray[Any]:
    """A plain array over a mapped file: slices of `np.memmap` are slow. A file of objects raises ValueError."""
    return np.asarray(np.lib.format.open_memmap(file, mode="r"))


def advise_random_access(array: NDArray[Any]) -> None:
    """Tell the system that rows of a large mapped array are read one by one, far apart; of any other do nothing.

    Else it reads some hundred kilobytes around each from the disk, and for them gives back pages that are in use.
    """
    if array.nbytes < LARGE:
        return
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        with suppress(OSError):
            base.madvise(mmap.MADV_RANDOM)

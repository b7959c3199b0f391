"""Arrays of NumPy's files, mapped into memory: processes that map the same file share its pages."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.mapped_pages import ask_for_bytes, read_maps, read_maps_for_now, register

LARGE = 1 << 28  # bytes: of a larger array the rows that a question needs are asked for one by one
WHOLE = 1 << 30  # bytes: of a smaller array a batch of many questions meets most large pages


def mapped_array(file: Path) -> NDArray[Any]:
    """A plain array over a mapped file: slices of `np.memmap` are slow. A file of objects raises ValueError."""
    return plain_array(np.lib.format.open_memmap(file, mode="r"))


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """An `np.memmap` for reading as a plain array, whose pages `give_back_memory` takes; any other array as it is."""
    if (held := _map_of(array)) is not None:
        register(held)
    return np.asarray(array)


def rows_of(array: NDArray[Any], rows: Any) -> NDArray[Any]:
    """`array[rows]`, copied, of a C-ordered array (n, …)."""
    rows = np.asarray(rows, np.int64)  # an empty list would be of floats
    ask_for_rows(array, rows)
    return np.asarray(array.take(rows, axis=0))  # rows of many values in two thirds of the time of `array[rows]`


def ask_for_rows(array: NDArray[Any], rows: NDArray[Any]) -> None:
    """Have the system read some rows of a large mapped array, each page once; of any other array do nothing."""
    if array.nbytes >= LARGE and (held := _map_of(array)) is not None:
        first = array.ctypes.data - np.frombuffer(held, np.uint8, 1).ctypes.data + rows * array.strides[0]
        ask_for_bytes(held, first, first + array.strides[0])


def read_whole(*arrays: NDArray[Any]) -> bool:
    """Have the system read mapped arrays as a whole, where a batch has many questions; whether it does."""
    return read_maps(_maps_of(arrays))


def read_whole_for_now(*arrays: NDArray[Any]) -> None:
    """`read_whole` until pages are given back, for what some strategies alone need."""
    read_maps_for_now(_maps_of(arrays))


def _maps_of(arrays: Iterable[NDArray[Any]]) -> list[mmap.mmap]:
    return [held for array in arrays if (held := _map_of(array)) is not None]


def _map_of(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base  # of `np.frombuffer`
    return base if isinstance(base, mmap.mmap) else None

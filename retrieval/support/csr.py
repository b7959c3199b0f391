"""Rows of a CSR layout read together: entry numbers and owners of many rows in two array operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def expand_ranges(begins: NDArray[Any], ends: NDArray[Any]) -> tuple[Ints, Ints]:
    """Ranges laid end to end: the positions in all of them, and of each position the index of its range.

    Both results have the shape (Σ(ends − begins),). `expand_ranges([3, 8], [5, 9])` is `([3, 4, 8], [0, 0, 1])`: with
    `begins = indptr[rows]` and `ends = indptr[rows + 1]`, the entries of some rows of a CSR matrix, row by row.
    """
    lengths = ends - begins
    stops = lengths.cumsum()
    owners = np.arange(len(begins)).repeat(lengths)
    return np.arange(len(owners)) + (ends - stops)[owners], owners


class Lists(Sequence[Ints]):
    """Lists of numbers laid end to end: `values` (t,), and where each begins, `start` (k + 1,)."""

    def __init__(self, values: Ints, start: Ints) -> None:
        self._values, self._start = values, start

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, number: Any) -> Any:
        """A list by its number; IndexError beyond the last."""
        if not 0 <= number < len(self):
            raise IndexError(f"list {number} of {len(self)}")
        return self._values[self._start[number] : self._start[number + 1]]

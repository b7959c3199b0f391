"""Rows of a CSR layout read together: entry numbers and owners of many rows in two array operations."""

from __future__ import annotations

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

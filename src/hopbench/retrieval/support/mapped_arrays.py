"""Arrays of NumPy's files, mapped into memory: processes that map the same file share its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mapped_array(file: Path) -> NDArray[Any]:
    """Map a file as a plain array: slices of `np.memmap` are slow. A file of objects raises ValueError."""
    return np.asarray(np.lib.format.open_memmap(file, mode="r"))


def rows_of(array: NDArray[Any], rows: Any) -> NDArray[Any]:
    """Copy `array[rows]` of a C-ordered array (n, …), in two thirds of the time of indexing."""
    return np.asarray(array.take(np.asarray(rows, np.int64), axis=0))  # an empty list would be of floats

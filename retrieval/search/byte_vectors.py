"""Unit vectors in bytes, and their products: exact whole numbers, in less than half of float32's time with VNNI.

A component is a whole number of steps, 127 of them at most. NumKong multiplies bytes by the instructions that the
processor has for them, and adds the products as whole numbers of 32 bits. What is lost is lost in the rounding to steps
(`spread`), the same on every processor.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

STEPS = 127  # of a byte, on each side of zero
BLOCK = 65_536  # rows at a time

Floats = NDArray[np.float32]


class ByteVectors(NamedTuple):
    """Vectors that are `codes` (n, d) times `step`, which is that of all of them or, (n,), of each."""

    codes: NDArray[np.int8]
    step: Floats

    @classmethod
    def alike(cls, vectors: Floats) -> Self:
        """Vectors (n, d) with one step, so that products with them can be compared."""
        parts = [vectors[begin : begin + BLOCK] for begin in range(0, len(vectors), BLOCK)]
        step = _step(np.max([np.abs(part).max() for part in parts], initial=0.0))
        codes = [_in_steps(part, step) for part in parts]
        return cls(np.concatenate([np.zeros((0, vectors.shape[1]), np.int8), *codes]), step)

    @classmethod
    def each(cls, vectors: Floats) -> Self:
        """Vectors (n, d) each with a step of its own, so that none depends on the others."""
        step = _step(np.abs(vectors).max(axis=1, initial=0.0))
        return cls(_in_steps(vectors, step[:, None]), step)

    def spread(self, others: ByteVectors) -> Floats:
        """The standard deviation of what rounding adds to products of unit vectors, of components that round apart."""
        return np.asarray(np.sqrt((self.step * self.step + others.step * others.step) / 12.0), np.float32)


def byte_products(rows: NDArray[np.int8], others: NDArray[np.int8]) -> NDArray[np.int32]:
    """The products of all rows (r, d) with all others (o, d), (r, o), in steps of both; it does not hold the GIL."""
    if not len(rows) or not len(others):
        return np.zeros((len(rows), len(others)), np.int32)
    return np.asarray(_numkong().dots_packed(rows, _numkong().dots_pack(others, dtype="int8")))


@cache
def _numkong() -> ModuleType:
    """NumKong without its kernels for AMX, which each thread would have to be made ready for."""
    import numkong

    for name, has in numkong.get_capabilities().items():
        if has and name.endswith("amx"):
            numkong.disable_capability(name)
    return numkong


def _step(largest: np.floating | Floats) -> Floats:
    """The step for components up to `largest`; zeros are whole numbers of any step."""
    return np.asarray(np.where(largest > 0, largest, 1.0) / STEPS, np.float32)


def _in_steps(vectors: Floats, step: Floats) -> NDArray[np.int8]:
    return np.asarray(np.clip(np.rint(vectors / step), -STEPS, STEPS), np.int8)

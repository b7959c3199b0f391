"""Unit vectors in bytes, and their products: exact whole numbers, in less than half of float32's time with VNNI.

A component is a whole number of steps, 127 of them at most. NumKong multiplies bytes by the instructions that the
processor has for them (AMX's tiles take half the time of VNNI), and adds the products as whole numbers of 32 bits. What
is lost is lost in the rounding to steps (`spread`), the same on every processor.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.cells import Floats, blocks

STEPS = 127  # of a byte, on each side of zero
_ARCH_PRCTL, _GET_PERMITTED, _TILES = 158, 0x1022, 1 << 18  # arch_prctl(2) of Linux on x86-64: ARCH_GET_XCOMP_PERM


class ByteVectors(NamedTuple):
    """Vectors that are `codes` (n, d) times `step`, which is that of all of them or, (n,), of each."""

    codes: NDArray[np.int8]
    step: Floats

    @classmethod
    def with_common_step(cls, vectors: Floats) -> Self:
        """Vectors (n, d) with one step, so that products with them can be compared."""
        step = _step(np.max([np.abs(vectors[part]).max() for part in blocks(len(vectors))], initial=0.0))
        codes = np.empty(vectors.shape, np.int8)
        for part in blocks(len(vectors)):
            codes[part] = _in_steps(vectors[part], step)
        return cls(codes, step)

    @classmethod
    def with_own_steps(cls, vectors: Floats) -> Self:
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
    """NumKong without its kernels for AMX where the system has not permitted them: it asks, but ignores the answer."""
    import numkong

    for name, has in numkong.get_capabilities().items():
        if has and name.endswith("amx") and not _tiles_permitted():
            numkong.disable_capability(name)
    return numkong


def _tiles_permitted() -> bool:
    """Whether Linux lets this process use AMX's tiles, in all its threads and its forks; False on other systems."""
    permitted = ctypes.c_uint64()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without `syscall`
            ctypes.CDLL(None).syscall(_ARCH_PRCTL, _GET_PERMITTED, ctypes.byref(permitted))
    return bool(permitted.value & _TILES)


def _step(largest: np.floating | Floats) -> Floats:
    """The step for components up to `largest`; zeros are whole numbers of any step."""
    return np.asarray(np.where(largest > 0, largest, 1.0) / STEPS, np.float32)


def _in_steps(vectors: Floats, step: Floats) -> NDArray[np.int8]:
    return np.asarray(np.clip(np.rint(vectors / step), -STEPS, STEPS), np.int8)

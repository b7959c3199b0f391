"""Numbers that every processor computes alike, to the last bit.

Matrix products (BLAS) and elementary functions (NumPy's vector versions, the C library's) choose their instructions by
the processor, and their last bits with them; a number rounded to some decimals then still falls to either side now and
then, and with it a graph's fingerprint, a score or an order. IEEE 754 fixes the result of one addition, subtraction,
multiplication, division, square root or rounding, so what is made of those in an order that is written down here is
the same anywhere:

- **Exact products.** Unit vectors stand on a grid of 2⁻²⁴ (`on_grid`). A product of two components is a multiple of
  2⁻⁴⁸, and no partial sum of a dot product is beyond 1 (Cauchy and Schwarz), so float64 holds each of them without
  rounding: `@` in float64 is exact, whichever kernel, order, or number of threads sums it.
- Metrics are made `summable` before they are resampled: those sums are exact as well.
- **A fixed order** where numbers stand on no grid: `weighted_sum` adds by halves, `log` and `exp` are FreeBSD's
  (fdlibm's) formulas, within one unit in the last place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GRID_BITS = 24
_GRID = 2.0**GRID_BITS
_ROWS = 4096
SHARE_BITS = 40  # shares of a whole: sums of thousands of them are exact

_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
_LOG = tuple(
    map(
        float.fromhex,
        (
            "0x1.5555555555593p-1",
            "0x1.999999997fa04p-2",
            "0x1.2492494229359p-2",
            "0x1.c71c51d8e78afp-3",
            "0x1.7466496cb03dep-3",
            "0x1.39a09d078c69fp-3",
            "0x1.2f112df3e5244p-3",
        ),
    )
)
_EXP = tuple(
    map(
        float.fromhex,
        (
            "0x1.555555555553ep-3",
            "-0x1.6c16c16bebd93p-9",
            "0x1.1566aaf25de2cp-14",
            "-0x1.bbd41c5d26bf1p-20",
            "0x1.6376972bea4d0p-25",
        ),
    )
)


def on_grid(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Vectors, components within ±1, with each component rounded to a multiple of 2⁻²⁴: float32 holds those exactly.

    Moves a component by 3e-8 at most. Vectors that stand there already are given back, not copied.
    """
    vectors = np.asarray(vectors)
    parts = (vectors[begin : begin + _ROWS] for begin in range(0, len(vectors), _ROWS))
    if vectors.dtype == np.float32 and all(np.array_equal(part, _rounded(part)) for part in parts):
        return vectors
    return _rounded(vectors).astype(np.float32, copy=False)


def _rounded(vectors: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    scaled = vectors * _GRID
    np.rint(scaled, out=scaled)
    scaled /= _GRID
    return scaled


def shares(parts: Floats, whole: Any) -> Floats:
    """`parts / whole`, each at most 1, rounded to a multiple of 2⁻⁴⁰: sums of fewer than 2¹³ of them are exact."""
    scale = 2.0**SHARE_BITS
    return np.asarray(np.rint(parts / whole * scale) / scale)


def summable(values: Any, count: int) -> Floats:
    """Values rounded so that the sums of any `count` of them are exact in float64, in any order.

    To 2^−(52 − log₂ count) of the largest: twelve digits and more for 1,000 of them.
    """
    values = np.asarray(values, np.float64)
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    step = float(np.ldexp(1.0, int(exponent) - 52 + (count - 1).bit_length()))
    return values if step == 0.0 else np.asarray(np.rint(values / step) * step)


def product_error(dimension: int) -> float:
    """No float32 product of two unit vectors, in any order of summation, is further than this from the exact one.

    d·u/(1 − d·u) with u = 2⁻²⁴, since the sum of |xᵢyᵢ| is at most 1 (Higham, Accuracy and Stability of Numerical
    Algorithms, 3.1), and 1% more for lengths that are not quite 1: 1.5e-5 for 256 dimensions.
    """
    unit = dimension * 2.0**-24
    return 1.01 * unit / (1.0 - unit)


def summed(values: Floats) -> Floats:
    """Sums over the first axis of (m, …), by halves: of 8 rows 0 + 4, 1 + 5, …, then 0 + 2, 1 + 3, then both."""
    return _halved(np.array(values, np.float64))


def row_lengths(rows: Floats) -> Floats:
    """The Euclidean lengths of rows (n, d), (n,): of sums in `summed`'s order, without turning the matrix around."""
    squares = rows * rows
    left = rows.shape[1]
    while left > 1:
        half = (left + 1) // 2
        squares[:, : left - half] += squares[:, half:left]
        left = half
    return np.asarray(np.sqrt(squares[:, 0])) if left else np.zeros(len(rows))


def weighted_sum(rows: Floats, weights: Floats) -> Floats:
    """`rows @ weights`, (k, m) and (m,) → (k,), added in a fixed order."""
    return _halved(np.multiply(rows.T, weights[:, None], order="C"))


def _halved(values: Floats) -> Floats:
    """`summed`, in place."""
    rows = len(values)
    if not rows:
        return np.zeros(values.shape[1:])
    while rows > 1:
        half = (rows + 1) // 2
        values[: rows - half] += values[half:rows]
        rows = half
    return np.asarray(values[0])


def length(vector: Floats) -> float:
    """The Euclidean length of a vector."""
    return float(np.sqrt(summed(vector * vector)))


def log(x: Any) -> Floats:
    """Natural logarithms of positive, finite numbers."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    small = fraction < _SQRT_HALF
    f = np.where(small, 2.0 * fraction, fraction) - 1.0
    k = exponent - small.astype(np.float64)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    a, b, c, d, e, g, h = _LOG
    rest = w * (b + w * (d + w * g)) + z * (a + w * (c + w * (e + w * h)))
    half = 0.5 * f * f
    return np.asarray(k * _LN2_HIGH - ((half - (s * (half + rest) + k * _LN2_LOW)) - f))


@lru_cache(maxsize=100_000)
def ln(x: float) -> float:
    """The natural logarithm of one positive, finite number: `log`'s, cached."""
    return float(log(x))


def exp(x: Any) -> Floats:
    """e to the power of numbers within ±700."""
    x = np.asarray(x, np.float64)
    k = np.rint(x * _PER_LN2)
    high, low = x - k * _LN2_HIGH, k * _LN2_LOW
    r = high - low
    t = r * r
    a, b, c, d, e = _EXP
    part = r - t * (a + t * (b + t * (c + t * (d + t * e))))
    return np.asarray(np.ldexp(1.0 - ((low - (r * part) / (2.0 - part)) - high), k.astype(np.int32)))

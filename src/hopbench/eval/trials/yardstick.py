"""Reference computations that measure how fast the machine is at this moment, as a yardstick for latencies.

They are of the same nature as a strategy's work, and fixed: nothing of the project's own code, which may itself become
slower, and nothing of the corpus. A change here raises `VERSION`: paces of two versions are not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

VERSION = 1
_WORDS = [f"w{number % 700}" for number in range(3000)]
_ROWS, _WIDTH, _PRODUCTS, _BEST = 1024, 256, 8, 100


def yardsticks(store: Any) -> dict[str, Callable[[], object]]:
    """`yardstick`, about a millisecond in this process; and where the graph is on a server, its `engine`."""
    engine = getattr(store, "reference", None)
    return {"yardstick": reference, **({} if engine is None else {"engine": engine})}


def reference() -> tuple[list[tuple[str, int]], list[int]]:
    """Count and sort words, as Python does it, then rank rows by a product with a vector, as NumPy and BLAS do it."""
    counts: dict[str, int] = {}
    for word in _WORDS:
        counts[word] = counts.get(word, 0) + len(word)
    first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rows, vectors = _arrays()
    best: list[int] = []
    for vector in vectors:
        scores = rows @ vector
        chosen = np.argpartition(-scores, _BEST)[:_BEST]
        best = chosen[np.lexsort((chosen, -scores[chosen]))].tolist()
    return first, best


@cache
def _arrays() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((_ROWS, _WIDTH), dtype=np.float32)
    return rows, generator.standard_normal((_PRODUCTS, _WIDTH), dtype=np.float32)

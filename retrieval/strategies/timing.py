"""Seconds per stage of a strategy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from retrieval.types import Counters


@contextmanager
def stage(counters: Counters, name: str) -> Iterator[None]:
    """Add the time spent inside to `counters.stage_seconds[name]`, also when the stage fails."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        counters.stage_seconds[name] += time.perf_counter() - begun  # type: ignore[assignment]

"""Seconds per stage of a strategy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hopbench.retrieval.types import Counters

_inner_seconds: ContextVar[float] = ContextVar("inner_seconds", default=0.0)


@contextmanager
def stage(counters: Counters, name: str) -> Iterator[None]:
    """Add the time spent inside to `counters.stage_seconds[name]`, also when the stage fails.

    Stages may nest, each with counters of its own: an inner stage's time is not the outer one's.
    """
    outer = _inner_seconds.get()
    _inner_seconds.set(0.0)
    begun = time.perf_counter()
    try:
        yield
    finally:
        spent = time.perf_counter() - begun
        counters.stage_seconds[name] += spent - _inner_seconds.get()  # type: ignore[assignment]
        _inner_seconds.set(outer + spent)

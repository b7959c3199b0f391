"""Seconds per stage of a strategy, and of what is done once for an index, whichever strategy comes first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from hopbench.retrieval.types import Counters

_inner_seconds: ContextVar[float] = ContextVar("inner_seconds", default=0.0)
_once: ContextVar[Once | None] = ContextVar("once", default=None)


@dataclass
class Once:
    """The seconds of what was done once for an index, such as reading the names of its entities."""

    seconds: float = 0.0


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


@contextmanager
def done_once() -> Iterator[None]:
    """Time of work that is done once for an index: no part of the stages around it, but of what `once_apart` gives."""
    once, outer = _once.get(), _inner_seconds.get()
    token = _once.set(None)  # what is done once within is a part of this
    begun = time.perf_counter()
    try:
        yield
    finally:
        spent = time.perf_counter() - begun
        _once.reset(token)
        _inner_seconds.set(outer + spent)
        if once is not None:
            once.seconds += spent


@contextmanager
def once_apart() -> Iterator[Once]:
    """The time of all that is done once within."""
    once = Once()
    token = _once.set(once)
    try:
        yield once
    finally:
        _once.reset(token)

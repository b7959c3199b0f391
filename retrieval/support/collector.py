"""Python's cyclic garbage collector, and when it only costs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector waits: it would walk over the corpus, and over all that is made from it, again and again.

    That was a third of a sweep's trial and a quarter of reading a corpus. For work that leaves no cycles behind.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()

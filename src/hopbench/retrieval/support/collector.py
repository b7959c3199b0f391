"""Python's cyclic garbage collector, and when it only costs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

_somebody_freezes = Event()  # for good: to count what is frozen walks over all of it, .1 s for a million objects


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector waits: it would walk over the corpus, and over all that is made from it, again and again.

    That was a third of a sweep's trial and a quarter of reading a corpus. For work that leaves no cycles behind: what
    is made meanwhile counts as old afterwards, so that the collector does not walk over it as soon as it resumes.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            if _somebody_freezes.is_set() or gc.get_freeze_count():
                _somebody_freezes.set()  # what is frozen would thaw
            else:
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()

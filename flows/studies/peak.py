"""Processor time and peak memory of a step."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Spent:
    """What a step took: processor seconds of all its threads, seconds on the clock, and the peak of resident bytes."""

    cpu: float
    clock: float
    peak: int


def spent(work: Callable[[], T]) -> tuple[T, Spent]:
    """The result of `work` and what it took. (Where Linux cannot reset it, the peak is that since the start.)"""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins the peak anew
    cpu, clock = time.process_time(), time.perf_counter()
    result = work()
    return result, Spent(time.process_time() - cpu, time.perf_counter() - clock, _peak())


def _peak() -> int:
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        if found:
            return int(found.group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

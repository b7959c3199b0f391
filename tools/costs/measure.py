"""Measure what one strategy or step costs: processor time, peak memory, and milliseconds a question."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar, TypeVar

import numpy as np
import psutil
from pydantic import ConfigDict

from hopbench.eval.trials.latency import measure_latency
from hopbench.eval.trials.trial import TrialOutcome, batches, prepare, run_trial
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Index, ReadCache
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.processes import usable_processors
from hopbench.retrieval.types import Question

SAMPLED_SECONDS = 2.0
T = TypeVar("T")
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)  # of the lines of a journal
Line = dict[str, Any]
RUNS = 3  # after the first; the fastest counts: disturbances only add time


@dataclass(frozen=True)
class Spent:
    """The cost of a step: processor seconds of all its threads, seconds on the clock, peak of resident bytes."""

    cpu: float
    clock: float
    peak: int


def spent(work: Callable[[], T]) -> tuple[T, Spent]:
    """Do `work` and measure it. (Where Linux cannot reset it, the peak is that since the start.)"""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins the peak anew
    cpu, begun = _cpu(), time.perf_counter()
    with _with_copies() as sampled:
        result = work()
    clock = time.perf_counter() - begun
    return result, Spent(_cpu() - cpu, clock, max(peak(), *sampled))


def peak() -> int:
    """Return the peak of this process's resident bytes since it was last reset."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        if found:
            return int(found.group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _cpu() -> float:
    """Processor seconds of this process and of the processes that it started."""
    for copy in multiprocessing.active_children():
        if copy.daemon:  # a fork that has done its work
            copy.join()
    copies = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + copies.ru_utime + copies.ru_stime


@contextmanager
def _with_copies() -> Iterator[list[int]]:
    """Samples of the bytes of this process and of what its copies have beside it, taken while they run."""
    samples, over, this = [0], Event(), psutil.Process()

    def sample() -> None:
        while not over.wait(SAMPLED_SECONDS):
            with suppress(psutil.Error):
                own = [copy.memory_full_info().uss for copy in this.children()]
                samples.append(this.memory_info().rss + sum(own) if own else 0)

    thread = Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Journal:
    """The lines of a file, the first of which are the `settings` that all of them were measured with."""

    file: Path
    settings: Mapping[str, Any]

    @classmethod
    def open(cls, file: Path, settings: Mapping[str, Any]) -> Journal:
        """Continue the file, or begin it. Raises InputError where it was begun with other settings."""
        journal = cls(file, dict(settings))
        lines = list(journal.lines())
        if not lines:
            file.parent.mkdir(parents=True, exist_ok=True)
            journal.add({"settings": dict(settings)})
        elif "settings" not in lines[0]:
            raise InputError(f"{file} does not begin with what it was measured with: remove it, or name another --out")
        elif lines[0]["settings"] != settings:
            raise InputError(
                f"{file} was measured with {lines[0]['settings']}, not with {dict(settings)}: name another --out"
            )
        return journal

    def lines(self) -> Iterator[Line]:
        """Read the lines; one that a kill left incomplete is skipped."""
        if not self.file.exists():
            return
        for text in self.file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict):
                yield line

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line and flush it to disk; it starts on a line of its own."""
        with self.file.open("ab") as opened:
            opened.write(b"\n" * (opened.tell() > 0) + json.dumps(line).encode())
            opened.flush()
            os.fsync(opened.fileno())


@dataclass(frozen=True)
class Cost:
    """The cost of one label on one corpus.

    `ms` is a question's share of the batch in processor time with nothing read before, and `clock_ms` that on the
    clock: the least of `RUNS` runs each. `once_seconds` is the one-time extra cost, cached for the index
    (names, adjacency, communities). Round trips are the batch's, rows and edges a question's; `failures` the questions
    that failed, `peak` the process's bytes with all that labels before it hold.
    `alone` and `alone_p95` are milliseconds on the clock of a question asked alone, warm, with what its first hits'
    scores are made of: the median and the 95th percentile of 50 at most. These three are 0 in measurements of versions
    that took none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    passages: int
    label: str
    ms: float
    once_seconds: float
    round_trips: int
    rows: float
    edges: float
    failures: int
    peak: int
    alone: float = 0.0
    alone_p95: float = 0.0
    clock_ms: float = 0.0


def measure(label: str, strategy: Strategy, index: Index, questions: Sequence[Question]) -> Cost:
    """Run a strategy several times over the questions, each time with nothing read before, and over single ones."""

    def once() -> tuple[Spent, int]:
        index.reads = ReadCache()
        parts = batches(index, questions, processes=usable_processors())
        prepare(parts)
        result, took = spent(lambda: run_trial(label, strategy, parts, Budget()))
        trials.append(result)
        return took, result.failures

    trials: list[TrialOutcome] = []
    first, _ = once()
    runs = [once() for _ in range(RUNS)]
    cpu, clock = (min(getattr(took, name) for took, _ in runs) for name in ("cpu", "clock"))
    alone = [*measure_latency(strategy, index, questions, explained=True).values()]
    median, slow = np.quantile(alone, [0.5, 0.95]).tolist()
    count, counters = len(questions), trials[-1].counters
    return Cost(
        len(index.chunks),
        label,
        1000 * cpu / count,
        max(first.cpu - cpu, 0.0),
        counters.round_trips,
        counters.rows / count,
        counters.edges_touched / count,
        max(failures for _, failures in runs),
        max(first.peak, *(took.peak for took, _ in runs)),
        median,
        slow,
        1000 * clock / count,
    )

"""Measure what one strategy or step costs: processor time, peak memory, and milliseconds a question."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import psutil
from pydantic import ConfigDict

from hopbench.eval.trials.latency import measure_latency
from hopbench.eval.trials.trial import TrialOutcome, batches, prepare, run_trial
from hopbench.flows.graph.build import open_index
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index, ReadCache
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import IncompleteError, InputError
from hopbench.retrieval.support.processes import usable_processors
from hopbench.retrieval.types import Question

SAMPLED_SECONDS = 2.0
T = TypeVar("T")
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)  # of the lines of a journal
Line = dict[str, Any]
RUNS = 3  # after the first; the fastest counts: disturbances only add time
MAX_PROCESSES = 4  # by default: each process holds its own copy of what strategies derive from the graph
_held: list[_Held] = []


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


def usual_processes() -> int:
    """Count the processors that this process may use, `MAX_PROCESSES` at most."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_PROCESSES)


@dataclass(frozen=True)
class SharedCost:
    """A question's `ms` on the clock where `processes` share a batch, as workers of `run --runner processes --batch N`.

    The least of `RUNS` runs, each with nothing read before; what processes do once is left out. `failures`
    are the questions that failed.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    passages: int
    label: str
    processes: int
    ms: float
    failures: int = 0


class Processes:
    """Processes that have the index of a graph open, each for its part of the questions; a context that ends them.

    The graph must have been built. Entering raises what a process raises that cannot open it.
    """

    def __init__(self, count: int, options: GraphOptions, home: Path) -> None:
        self._given = options, home
        context = get_context("spawn")  # as Prefect's pool of processes: nothing of this process is shared
        self._pools = [ProcessPoolExecutor(1, context) for _ in range(count)]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.push(self)
            begun = [
                pool.submit(_open, part, *self._given) for pool, part in zip(self._pools, self._parts(), strict=True)
            ]
            self._results(begun)
            stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for pool in self._pools:
            pool.shutdown(wait=kind is None, cancel_futures=True)

    def measured(self, label: str) -> SharedCost:
        """Rank with a label several times; raises what a process raised, and IncompleteError where one was killed."""
        runs = []
        for _ in range(1 + RUNS):
            sizes = self._all(_prepare, label)
            begun = time.perf_counter()
            failures = sum(self._all(_rank))
            runs.append((time.perf_counter() - begun) / sum(questions for questions, _ in sizes))
        return SharedCost(sizes[0][1], label, len(self._pools), 1000 * min(runs[1:]), failures)

    def _all(self, work: Callable[..., Any], *given: object) -> list[Any]:
        """The results of the same work in all processes at a time."""
        return self._results([pool.submit(work, *given) for pool in self._pools])

    def _parts(self) -> list[slice]:
        """The questions of each process."""
        return [slice(number, None, len(self._pools)) for number in range(len(self._pools))]

    def _results(self, begun: Sequence[Future[Any]]) -> list[Any]:
        try:
            return [each.result() for each in begun]
        except BrokenProcessPool as error:
            raise IncompleteError(
                f"one of {len(self._pools)} processes that share the questions was ended from outside, as the system "
                "does where memory is short. What was measured is kept: the same command goes on, with --processes 1 "
                "without them"
            ) from error


@dataclass
class _Held:
    """What a process holds open: an index and its part of the questions, and the batches that are ranked next."""

    index: Index
    questions: list[Question]
    label: str = ""
    parts: list[Batch] = field(default_factory=list)


def _open(part: slice, options: GraphOptions, root: Path) -> None:
    home = Home(root)
    benchmark = options.benchmark(home)
    index = open_index(options, options.graph_plan(benchmark, home), home)
    _held.append(_Held(index, [question.question for question in benchmark.questions][part]))


def _prepare(label: str) -> tuple[int, int]:
    """Compute what labels share; return how many questions and chunks there are."""
    held = _held[-1]
    held.label, held.index.reads = label, ReadCache()
    held.parts = batches(held.index, held.questions)
    prepare(held.parts)
    return len(held.questions), len(held.index.chunks)


def _rank() -> int:
    """Rank the prepared batches; return how many questions failed."""
    held = _held[-1]
    return run_trial(held.label, make(held.label), held.parts, Budget()).failures

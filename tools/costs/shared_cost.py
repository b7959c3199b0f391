"""What a label costs where processes share the questions: Python code runs on one processor only in each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from pydantic import ConfigDict

from hopbench.eval.trials.trial import batches, prepare, run_trial
from hopbench.flows.graph.build import open_index
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index, ReadCache
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.types import Question
from tools.costs.journal import KEPT
from tools.costs.label_cost import AFTER_THE_FIRST

MOST = 4  # unless more are asked for: each process holds what strategies make of the graph


def usual_processes() -> int:
    """One a processor that this process may use, `MOST` at most."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST)


@dataclass(frozen=True)
class SharedCost:
    """A question's `ms` on the clock where `processes` share a batch, as workers of `run --runner processes --batch N`.

    The least of `AFTER_THE_FIRST` runs, each with nothing read before; what processes do once is left out. `failures`
    are the questions that failed.
    """

    __pydantic_config__: ClassVar[ConfigDict] = KEPT

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
        for _ in range(1 + AFTER_THE_FIRST):
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


_held: list[_Held] = []


def _open(part: slice, options: GraphOptions, root: Path) -> None:
    home = Home(root)
    benchmark = options.benchmark(home)
    index = open_index(options, options.graph_plan(benchmark, home), home)
    _held.append(_Held(index, [question.question for question in benchmark.questions][part]))


def _prepare(label: str) -> tuple[int, int]:
    """Compute what labels share; returns how many questions and chunks there are."""
    held = _held[-1]
    held.label, held.index.reads = label, ReadCache()
    held.parts = batches(held.index, held.questions)
    prepare(held.parts)
    return len(held.questions), len(held.index.chunks)


def _rank() -> int:
    """Rank the prepared batches; returns how many questions failed."""
    held = _held[-1]
    return run_trial(held.label, make(held.label), held.parts, Budget()).failures

"""What a label costs where processes share the questions: each computes Python on one processor at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
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
from hopbench.flows.studies.journal import KEPT
from hopbench.flows.studies.label_cost import AFTER_THE_FIRST
from hopbench.retrieval.budget import Budget
from hopbench.retrieval.index import Batch, Index, ReadCache
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.types import Question


@dataclass(frozen=True)
class SideBySide:
    """A question's `ms` of a batch on the clock where `processes` share its questions, as `run --runner processes`.

    The least of `AFTER_THE_FIRST` runs, each with nothing read before; what processes do once is left out.
    """

    __pydantic_config__: ClassVar[ConfigDict] = KEPT

    passages: int
    label: str
    processes: int
    ms: float


class Processes:
    """Processes that have a graph's index open, each for its part of the questions; a context whose end ends them."""

    def __init__(self, count: int, options: GraphOptions, home: Path) -> None:
        context = get_context("spawn")  # as Prefect's pool of processes: nothing of this process is shared
        self._pools = [
            ProcessPoolExecutor(1, context, _open, (options, home, slice(number, None, count)))
            for number in range(count)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for pool in self._pools:
            pool.shutdown(wait=kind is None, cancel_futures=True)

    def measured(self, label: str) -> SideBySide:
        """Rank with a label several times; raises what a process raised, and IncompleteError where one was killed."""
        runs = []
        for _ in range(1 + AFTER_THE_FIRST):
            sizes = self._all(_prepare, label)
            begun = time.perf_counter()
            self._all(_rank)
            runs.append((time.perf_counter() - begun) / sum(questions for questions, _ in sizes))
        return SideBySide(sizes[0][1], label, len(self._pools), 1000 * min(runs[1:]))

    def _all(self, work: Callable[..., Any], *given: object) -> list[Any]:
        """The results of the same work in all processes at a time."""
        try:
            return [each.result() for each in [pool.submit(work, *given) for pool in self._pools]]
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


def _open(options: GraphOptions, root: Path, part: slice) -> None:
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


def _rank() -> None:
    held = _held[-1]
    run_trial(held.label, make(held.label), held.parts, Budget())

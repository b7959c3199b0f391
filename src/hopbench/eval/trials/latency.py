"""What one question costs when it is asked alone: its latency, and its pace beside a yardstick.

Latency is wall time, and on a busy machine most of it is waiting. To tell slower code from a busier machine, each call
is timed between two runs of a fixed reference computation (`trials.yardstick`): the label's *pace* is the median
ratio of the two, which a slower machine leaves as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Self

import numpy as np
from threadpoolctl import threadpool_limits

from hopbench.eval.trials.ranking import rank_batch
from hopbench.eval.trials.yardstick import VERSION, yardsticks
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.types import DETAILED, Counters, Question, Ranking

if TYPE_CHECKING:
    from types import TracebackType

    from hopbench.retrieval.strategies.base import Strategy

LATENCY_QUESTIONS = 50
MOST_ROUNDS = 30
WAITS = "/proc/thread-self/schedstat"


class Clock:
    """Times calls of this thread: wall time, and its own time, without what it waited for a free processor.

    Linux tells that wait (`schedstat`'s second number, nanoseconds); elsewhere own time is wall time.
    """

    def __init__(self, waits: str | None = None) -> None:
        self._path = waits or WAITS
        self._file: int | None = None

    def __enter__(self) -> Self:
        """Open what tells the waits of the calling thread."""
        with suppress(OSError):
            self._file = os.open(self._path, os.O_RDONLY)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close it."""
        if self._file is not None:
            os.close(self._file)

    @property
    def tells_waits(self) -> bool:
        """Whether own time is more than wall time under another name."""
        return self._file is not None

    def time(self, call: Callable[[], object]) -> tuple[float, float]:
        """Milliseconds of one call: wall time and own time."""
        waited, begun = self._waited(), time.perf_counter()
        call()
        wall = (time.perf_counter() - begun) * 1000
        return wall, max(wall - (self._waited() - waited) / 1e6, 1e-3)

    def _waited(self) -> int:
        return 0 if self._file is None else int(os.pread(self._file, 64, 0).split()[1])


def measure_latency(
    strategy: Strategy,
    index: Index,
    questions: Sequence[Question],
    seed: int = 0,
    *,
    answered_only: bool = False,
    explained: bool = False,
) -> dict[str, float]:
    """Milliseconds of single calls, warm, on 50 seeded questions; nothing is shared with other calls.

    With `answered_only`, a call that fails has no latency: how soon an endpoint refuses says nothing of how fast it
    ranks. With `explained`, what the scores of the first 20 hits are made of is read as well.

    BLAS has one thread meanwhile: two would wait for each other wherever a processor is taken, 7 ms for a product of
    .1 ms, and so measure the machine's load.
    """
    taken: dict[str, float] = {}
    with threadpool_limits(1, "blas"), Clock() as clock:
        for question in _warm(_sample(questions, seed)):
            milliseconds, failed = _timed(clock, strategy, index, question, DETAILED if explained else 0)
            if not (failed and answered_only):
                taken[question.id] = milliseconds
    return taken


def _timed(clock: Clock, strategy: Strategy, index: Index, question: Question, detailed: int) -> tuple[float, bool]:
    """Wall time of one call, which reads the components of the first `detailed` hits, and whether it failed."""
    found: list[Ranking] = []

    def call() -> None:
        found.extend(rank_batch(strategy, Batch(index, [question], alone=True), Counters()))
        for hit in found[0].hits[:detailed]:
            dict(hit.components)

    wall, _ = clock.time(call)
    return wall, found[0].failure is not None


def measure_paced(
    strategy: Strategy, index: Index, questions: Sequence[Question], seed: int = 0
) -> tuple[dict[str, float], dict[str, float]]:
    """`measure_latency`, and the label's pace: {} where there are no questions, else in milliseconds and as ratios.

    `version` of the yardsticks, `own_ms` of a question, and for each yardstick (`yardstick`, in this process; with
    Neo4j also `engine`) its median `NAME_ms` and `to_NAME`, the median of a call's own time over the mean own time of
    the yardstick just before and after it.
    """
    taken: dict[str, float] = {}
    own: list[float] = []
    with threadpool_limits(1, "blas"), Clock() as clock:
        measures: Mapping[str, Callable[[], object]] = yardsticks(index.store)
        beside: dict[str, list[float]] = {name: [] for name in measures}
        rounds = 1
        for question in _warm(_sample(questions, seed)):
            wall, alone = clock.time(_asking(strategy, index, question))
            if not taken and not clock.tells_waits:
                rounds = _rounds(wall, clock.time(measures["yardstick"])[0])
            for name, measure in measures.items():
                beside[name].append(_each(clock, measure, rounds if name == "yardstick" else 1))
            taken[question.id] = wall
            own.append(alone)
    return taken, pace(own[1:], beside) if taken else {}


def pace(own: Sequence[float], beside: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The pace of n calls; `beside` has each yardstick's n + 1 times, before the first call and after every one."""
    figures = {"version": float(VERSION), "own_ms": round(median(own), 4)}
    for name, times in beside.items():
        around = [fmean(pair) for pair in pairwise(times)]
        figures[f"{name}_ms"] = round(median(times), 4)
        figures[f"to_{name}"] = round(median(call / yard for call, yard in zip(own, around, strict=True)), 4)
    return figures


def _rounds(call_ms: float, yardstick_ms: float) -> int:
    """How often the yardstick runs at a time: where waits are not told it must be as long as a call to meet as many."""
    return max(1, min(MOST_ROUNDS, round(call_ms / yardstick_ms)))


def _each(clock: Clock, measure: Callable[[], object], rounds: int) -> float:
    def several() -> None:
        for _ in range(rounds):
            measure()

    return clock.time(several)[1] / rounds


def _asking(strategy: Strategy, index: Index, question: Question) -> Callable[[], object]:
    return lambda: rank_batch(strategy, Batch(index, [question], alone=True), Counters())


def _sample(questions: Sequence[Question], seed: int) -> list[Question]:
    generator = np.random.default_rng(seed)
    count = min(LATENCY_QUESTIONS, len(questions))
    return [questions[i] for i in sorted(generator.choice(len(questions), count, replace=False))]


def _warm(sample: Sequence[Question]) -> list[Question]:
    """The first question is asked twice: once to warm up."""
    return [*sample[:1], *sample]

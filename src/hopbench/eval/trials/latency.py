"""The latency of single questions, and their pace relative to a fixed reference computation.

Latency is wall time, and on a busy machine most of it is waiting. To tell slower code from a busier machine, each call
is timed between two runs of a reference computation (the yardstick): the label's *pace* is the median ratio of the two,
which a slower machine leaves unchanged.

The yardstick resembles a strategy's work and is fixed: it uses none of the project's own code, which may itself become
slower, and nothing of the corpus. Raise `YARDSTICK_VERSION` with any change: paces of two versions are not compared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from hopbench.eval.trials.trial import rank_batch
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.types import DETAILED, Counters, Question, Ranking

if TYPE_CHECKING:
    from hopbench.retrieval.strategies.base import Strategy

YARDSTICK_VERSION = 1
_WORDS = [f"w{number % 700}" for number in range(3000)]
_ROWS, _WIDTH, _PRODUCTS, _BEST = 1024, 256, 8, 100
LATENCY_QUESTIONS = 50
MAX_ROUNDS = 30
WAITS = Path("/proc/thread-self/schedstat")
Timer = Callable[[Callable[[], object]], tuple[float, float]]


def yardsticks(store: Any) -> dict[str, Callable[[], object]]:
    """`yardstick`, about a millisecond in this process; and where the graph is on a server, its `engine`."""
    engine = getattr(store, "reference", None)
    return {"yardstick": reference, **({} if engine is None else {"engine": engine})}


def reference() -> tuple[list[tuple[str, int]], list[int]]:
    """Count and sort words, as Python does it, then rank rows by a product with a vector, as NumPy and BLAS do it."""
    counts: dict[str, int] = {}
    for word in _WORDS:
        counts[word] = counts.get(word, 0) + len(word)
    first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rows, vectors = _arrays()
    best: list[int] = []
    for vector in vectors:
        scores = rows @ vector
        chosen = np.argpartition(-scores, _BEST)[:_BEST]
        best = chosen[np.lexsort((chosen, -scores[chosen]))].tolist()
    return first, best


@cache
def _arrays() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((_ROWS, _WIDTH), dtype=np.float32)
    return rows, generator.standard_normal((_PRODUCTS, _WIDTH), dtype=np.float32)


@contextmanager
def clock() -> Iterator[tuple[Timer, bool]]:
    """Yield a timer of calls of this thread, and whether the two times that it returns differ.

    It returns milliseconds: wall time, and the thread's own time, without what it waited for a free processor. Linux
    reports that wait (the second number of `schedstat`, in nanoseconds); elsewhere own time is wall time.
    """
    with ExitStack() as stack:
        try:
            waits = stack.enter_context(WAITS.open("rb", buffering=0))
        except OSError:
            waits = None

        def waited() -> int:
            return 0 if waits is None else int(os.pread(waits.fileno(), 64, 0).split()[1])

        def timed(call: Callable[[], object]) -> tuple[float, float]:
            before, started = waited(), time.perf_counter()
            call()
            wall = (time.perf_counter() - started) * 1000
            return wall, max(wall - (waited() - before) / 1e6, 1e-3)

        yield timed, waits is not None


def measure_latency(
    strategy: Strategy,
    index: Index,
    questions: Sequence[Question],
    seed: int = 0,
    *,
    answered_only: bool = False,
    explained: bool = False,
) -> dict[str, float]:
    """Measure milliseconds of single calls, warm, on 50 seeded questions; nothing is shared with other calls.

    With `answered_only`, a call that fails has no latency: how soon an endpoint refuses says nothing about how fast it
    ranks. With `explained`, the components of the first 20 hits are read as well.

    BLAS uses one thread here: two would wait for each other whenever a processor is busy, 7 ms for a product of 0.1 ms,
    and so measure the machine's load.
    """
    taken: dict[str, float] = {}
    last: list[Ranking] = []

    def call(question: Question) -> None:
        last[:] = rank_batch(strategy, Batch(index, [question], alone=True), Counters())
        for hit in last[0].hits[: DETAILED if explained else 0]:
            dict(hit.components)

    with threadpool_limits(1, "blas"), clock() as (timed, _):
        for question in _sample(questions, seed):
            wall, _ = timed(partial(call, question))
            if not (answered_only and last[0].failure is not None):
                taken[question.id] = wall
    return taken


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
    with threadpool_limits(1, "blas"), clock() as (timed, measures_waits):
        measures: Mapping[str, Callable[[], object]] = yardsticks(index.store)
        yardstick_ms: dict[str, list[float]] = {name: [] for name in measures}
        rounds = 1
        for question in _sample(questions, seed):
            wall, alone = timed(lambda: rank_batch(strategy, Batch(index, [question], alone=True), Counters()))  # noqa: B023
            if not taken and not measures_waits:  # then the yardstick must last as long as a call
                rounds = max(1, min(MAX_ROUNDS, round(wall / timed(measures["yardstick"])[0])))
            for name, measure in measures.items():
                times = rounds if name == "yardstick" else 1
                yardstick_ms[name].append(timed(lambda: [measure() for _ in range(times)])[1] / times)  # noqa: B023
            taken[question.id] = wall
            own.append(alone)
    return taken, pace(own[1:], yardstick_ms) if taken else {}


def pace(own: Sequence[float], yardstick_ms: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The pace of n calls; `yardstick_ms` has n + 1 times of each yardstick: before the first call and after each."""
    figures = {"version": float(YARDSTICK_VERSION), "own_ms": round(median(own), 4)}
    for name, times in yardstick_ms.items():
        around = [fmean(pair) for pair in pairwise(times)]
        figures[f"{name}_ms"] = round(median(times), 4)
        figures[f"to_{name}"] = round(median(call / yard for call, yard in zip(own, around, strict=True)), 4)
    return figures


def _sample(questions: Sequence[Question], seed: int) -> list[Question]:
    """Draw the questions to measure, the first of them twice: once to warm up."""
    generator = np.random.default_rng(seed)
    count = min(LATENCY_QUESTIONS, len(questions))
    sample = [questions[i] for i in sorted(generator.choice(len(questions), count, replace=False))]
    return [*sample[:1], *sample]

"""What one label costs on one corpus: a batch of questions, and questions asked alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict

from hopbench.eval.trials.latency import measure_latency
from hopbench.eval.trials.trial import TrialOutcome, batches, prepare, run_trial
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Index, ReadCache
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.forked import usable_processors
from hopbench.retrieval.types import Question
from tools.costs.journal import KEPT
from tools.costs.peak import Spent, spent

AFTER_THE_FIRST = 3  # runs, of which the least counts: what disturbs one only adds to it


@dataclass(frozen=True)
class Cost:
    """What one label cost on one corpus.

    `ms` is a question's share of the batch in processor time with nothing read before, and `clock_ms` that on the
    clock: the least of `AFTER_THE_FIRST` runs each. `once_seconds` is the one-time extra cost, cached for the index
    (names, adjacency, communities). Round trips are the batch's, rows and edges a question's; `failures` the questions
    that failed, `peak` the process's bytes with all that labels before it hold.
    `alone` and `alone_p95` are milliseconds on the clock of a question asked alone, warm, with what its first hits'
    scores are made of: the median and the 95th percentile of 50 at most. These three are 0 in measurements of versions
    that took none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = KEPT

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
    runs = [once() for _ in range(AFTER_THE_FIRST)]
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

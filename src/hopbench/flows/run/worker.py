"""A run's work on a worker, be it a thread, a process or another machine: one batch of questions with one strategy.

A worker gets the run's options, never a corpus or a graph: it reads those from the home and the data set, which both
sides can read (a shared file system, or Neo4j for the graph), and keeps them open for the next batch.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from hopbench.eval.trials.trial import Unit, UnitOutcome, run_unit
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.types import Benchmark
    from hopbench.retrieval.index import Batch, Index
    from hopbench.retrieval.strategies.base import Strategy

MAX_BATCHES = 4  # held at a time, each with what strategies computed for its questions


@dataclass(frozen=True)
class RunJob:
    """What workers need for a run; `token` is the same for all units of one run."""

    token: str
    options: RunOptions
    home: Path
    namespace: str
    build_key: str
    code: Mapping[str, str]

    def open(self) -> RunContext:
        """Open the run in this process."""
        check_same_code(self.code, self.options.labels().values())
        return RunContext(*open_benchmark(self.options, self.home, self.namespace, self.build_key), self.options)


def open_benchmark(options: GraphOptions, home: Path, namespace: str, build_key: str) -> tuple[Benchmark, Index]:
    """Read benchmark, vectors and graph; the graph must be the one that was built for this job."""
    from hopbench.flows.graph.build import open_index

    place = Home(home)
    place.apply_environment()
    benchmark = options.benchmark(place)
    index = open_index(options, options.graph_plan(benchmark, place), place)
    record = index.store.record()
    if record is None or record.get("build_key") != build_key:
        raise InputError(
            f"the worker on {os.uname().nodename} does not find the graph {namespace} in {home}: workers "
            "need the same HOPBENCH_HOME and data set (a shared file system), or --store neo4j"
        )
    return benchmark, index


def code_here(strategies: Iterable[Strategy]) -> dict[str, str]:
    """Version and digest of HopBench's code and of the plug-ins that these strategies use, in this process."""
    from hopbench.eval.trials.key import code_version, plugin_code

    return {"hopbench": code_version(), **plugin_code(strategies)}


def check_same_code(expected: Mapping[str, str], strategies: Iterable[Strategy]) -> None:
    """Refuse a worker whose code differs from the submitting process', which the trial's id names."""
    here = code_here(strategies)
    other = [
        f"{name} is {here.get(name, 'absent')} there and {code} here"
        for name, code in expected.items()
        if here.get(name) != code
    ]
    if other:
        raise InputError(
            f"the worker on {os.uname().nodename} has other code ({'; '.join(other)}): install the same there, "
            "and start its workers again"
        )


class RunContext:
    """A run opened in this process: benchmark, index, and the latest batches with what strategies share in them."""

    def __init__(self, benchmark: Benchmark, index: Index, options: RunOptions) -> None:
        self._benchmark = benchmark
        self._index = index
        self._options = options
        self._lock = Lock()
        self._batches: OrderedDict[int, Batch] = OrderedDict()

    @cached_property
    def strategies(self) -> dict[str, object]:
        """The run's labels."""
        return dict(self._options.labels())

    @cached_property
    def _parts(self) -> Sequence[Batch]:
        from hopbench.eval.trials.trial import batches

        questions = [question.question for question in self._benchmark.questions]
        return batches(self._index, questions, self._options.batch)

    def run(self, unit: Unit) -> UnitOutcome:
        """Rank one unit."""
        from hopbench.retrieval.context import Budget

        return run_unit(unit, self.strategies[unit.label], self._batch(unit.part), Budget())  # type: ignore[arg-type]

    def _batch(self, part: int) -> Batch:
        """The batch with what earlier units computed for it; only the latest few are held in memory."""
        from hopbench.retrieval.index import Batch

        with self._lock:
            if part not in self._batches:
                self._batches[part] = Batch(self._index, self._parts[part].questions)
                while len(self._batches) > MAX_BATCHES:
                    self._batches.popitem(last=False)
            return self._batches[part]

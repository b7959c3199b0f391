"""What a worker does, whatever thread, process or machine it is: open the benchmark once, then one unit after another.

A worker is told the options of the run, never handed a corpus or a graph: it reads them from the home and the data set
that both see (a shared file system, or Neo4j for the graph).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from hopbench.eval.trials.batch_work import Unit, UnitOutcome, run_unit
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import GraphOptions, RunOptions
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, StoreError

if TYPE_CHECKING:
    from hopbench.eval.types import Benchmark
    from hopbench.retrieval.index import Batch, Index
    from hopbench.retrieval.strategies.base import Strategy

KEPT_BATCHES = 4  # a batch's score matrices take up to 400 MB while they are computed


@dataclass(frozen=True)
class Job:
    """A run as its workers know it; `token` is the same for all units of one run."""

    token: str
    options: RunOptions
    home: Path
    namespace: str
    build_key: str
    code: Mapping[str, str]

    def open(self) -> Desk:
        """What a worker needs to do the run's units."""
        same_code(self.code, self.options.labels().values())
        return Desk(*opened(self.options, self.home, self.namespace, self.build_key), self.options)


class AnyDesk(Protocol):
    """A job opened in this process."""

    def run(self, unit: Any, /) -> Any:
        """Do one unit."""
        ...


class AnyJob(Protocol):
    """What workers are told, and open once; `token` is the same for all its units."""

    @property
    def token(self) -> str:
        """Its name."""
        ...

    def open(self) -> AnyDesk:
        """Open it in this process."""
        ...


def opened(options: GraphOptions, home: Path, namespace: str, build_key: str) -> tuple[Benchmark, Index]:
    """Read benchmark, vectors and graph; the graph must be the one that was built for this job."""
    from hopbench.flows.graph.build import open_index

    place = Home(home)
    place.apply_environment()
    benchmark = options.benchmark()
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
    from hopbench.eval.trials.version import code_version, plugin_code

    return {"hopbench": code_version(), **plugin_code(strategies)}


def same_code(told: Mapping[str, str], strategies: Iterable[Strategy]) -> None:
    """Refuse a worker whose code is not that of the process that asked: a trial's name says which code ranked."""
    here = code_here(strategies)
    other = [
        f"{name} is {here.get(name, 'absent')} there and {code} here"
        for name, code in told.items()
        if here.get(name) != code
    ]
    if other:
        raise InputError(
            f"the worker on {os.uname().nodename} has other code ({'; '.join(other)}): install the same there, "
            "and start its workers again"
        )


@dataclass(frozen=True)
class Failed:
    """Why a unit cannot be done, for the process that asked; a lost worker leaves none."""

    message: str
    exit_code: int

    def error(self) -> HopBenchError:
        """The error to raise there."""
        kinds = {InputError.exit_code: InputError, StoreError.exit_code: StoreError}
        return kinds.get(self.exit_code, IncompleteError)(self.message)


class Desk:
    """A benchmark opened in this process: its index, and its latest batches with what strategies keep in them."""

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
        """Do one unit."""
        from hopbench.retrieval.budget import Budget

        return run_unit(unit, self.strategies[unit.label], self._batch(unit.part), Budget())  # type: ignore[arg-type]

    def _batch(self, part: int) -> Batch:
        """The batch, as the last unit left it; the oldest are forgotten, and computed again should they return."""
        from hopbench.retrieval.index import Batch

        with self._lock:
            if part not in self._batches:
                self._batches[part] = Batch(self._index, self._parts[part].questions)
                while len(self._batches) > KEPT_BATCHES:
                    self._batches.popitem(last=False)
            return self._batches[part]


_desks: dict[str, AnyDesk] = {}
_opening = Lock()


def use_desk(token: str, desk: AnyDesk) -> None:
    """Let workers in this process use what it has opened already."""
    _desks[token] = desk


def leave_desk(token: str) -> None:
    """Forget a run's desk."""
    _desks.pop(token, None)


def work(job: AnyJob, unit: object) -> Any:
    """Do a unit of a job, which is opened in this process if need be. HopBench's own errors come back as values."""
    try:
        with _opening:
            desk = _desks.get(job.token)
            if desk is None:
                _desks.clear()  # the runs before it are over
                desk = _desks[job.token] = job.open()
        return desk.run(unit)
    except HopBenchError as error:
        return Failed(str(error), error.exit_code)

"""`--runner threads|processes|dask[=ADDRESS]`: a run's trials × question batches on Prefect's task runners."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from hopbench.eval.trials.trial import TrialOutcome, Unit, merged, run_unit, shared_seconds
from hopbench.flows.orchestration.task_pool import TaskPool, drop_context, share_context
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Plan
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.eval.types import Benchmark
    from hopbench.retrieval.graph.construction.builder import Steps
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

    def run(self, unit: Unit) -> TrialOutcome:
        """Rank one unit."""
        from hopbench.retrieval.context import Budget

        return run_unit(unit.label, self.strategies[unit.label], self._batch(unit.part), Budget())  # type: ignore[arg-type]

    def _batch(self, part: int) -> Batch:
        """The batch with what earlier units computed for it; only the latest few are held in memory."""
        from hopbench.retrieval.index import Batch

        with self._lock:
            if part not in self._batches:
                self._batches[part] = Batch(self._index, self._parts[part].questions)
                while len(self._batches) > MAX_BATCHES:
                    self._batches.popitem(last=False)
            return self._batches[part]


@dataclass(frozen=True)
class ScaledOut:
    """Ranks on the runner that the options name: the parallel form of the loop in `RunSession.execute`."""

    options: RunOptions
    home: Home

    def __call__(self, plan: Plan, kept: Unfinished, steps: Steps) -> tuple[dict[str, TrialOutcome], float]:
        """Every label's trial, and the seconds of the work that their batches shared."""
        whole = {label: done for label in plan.strategies if (done := kept.get(plan.key_of(label))) is not None}
        missing = [label for label in plan.strategies if label not in whole]
        parts = len(plan.parts)
        units = [Unit(part, label) for part in range(parts) for label in missing]
        found = self._all(plan, kept, units) if units else {}
        for label in missing:
            outcome = merged([found[Unit(part, label)] for part in range(parts)])
            whole[label] = steps(f"latency {label}", lambda: plan.time_calls(outcome))  # noqa: B023 - called at once
            kept.put(plan.key_of(label), whole[label])
        return {label: whole[label] for label in plan.strategies}, shared_seconds(found)

    def _all(self, plan: Plan, kept: Unfinished, units: Sequence[Unit]) -> dict[Unit, TrialOutcome]:
        names = {unit: f"{plan.key_of(unit.label)}-{unit.part}of{len(plan.parts)}" for unit in units}
        result = {unit: done for unit in units if (done := kept.get(names[unit])) is not None}
        job = RunJob(
            secrets.token_hex(8),
            self.options.absolute(),
            self.home.root,
            plan.index.store.namespace,
            str(plan.record["build_key"]),
            code_here(plan.strategies.values()),
        )
        share_context(job.token, RunContext(plan.benchmark, plan.index, self.options))

        def keep(unit: Unit, done: TrialOutcome) -> None:
            result[unit] = done
            kept.put(names[unit], done)

        try:
            pool = TaskPool(self.options.runner, self.options.workers, self.home)
            pool.run(job, [unit for unit in units if unit not in result], keep)
        finally:
            drop_context(job.token)
        return result

"""`--runner threads|processes|dask[=ADDRESS]`: units of work on Prefect's task runners, and a run's trials as such."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from hopbench.eval.trials.trial import TrialOutcome, Unit, merged, run_unit, shared_seconds
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions, WorkerOptions, runner_parts
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, MissingExtraError

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Plan
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.eval.types import Benchmark
    from hopbench.retrieval.graph.construction.builder import Steps
    from hopbench.retrieval.index import Batch, Index
    from hopbench.retrieval.strategies.base import Strategy

ATTEMPTS_WITHOUT_PROGRESS = 3
CONNECT_SECONDS = 10
MAX_BATCHES = 4  # held at a time, each with what strategies computed for its questions

U = TypeVar("U")
Do = Callable[[Any], Any]

_opened: dict[str, Do] = {}
_opening = Lock()
_under_way: ContextVar[tuple[Callable[[], Do], str, Mapping[Any, str], Callable[[Any, Any], None]]] = ContextVar(
    "hopbench_units"
)


def run_units(
    spread: WorkerOptions,
    home: Home,
    opened: Callable[[], Do],
    here: Do,
    units: Mapping[U, str],
    done: Callable[[U, Any], None],
) -> None:
    """Do all units (unit → the title that Prefect shows) and call `done` with each unit and its outcome.

    `opened` makes the function that does a unit in another process, `here` is that of this one. Raises IncompleteError
    after three pools in a row that finished nothing.
    """
    token, left, idle = secrets.token_hex(8), dict(units), 0
    _opened[token] = here

    def back(unit: U, outcome: Any) -> None:
        del left[unit]
        done(unit, outcome)

    try:
        while left:
            before = len(left)
            _one_pool(spread, home, opened, token, dict(left), back)
            idle = 0 if len(left) < before else idle + 1
            if idle == ATTEMPTS_WITHOUT_PROGRESS:
                raise IncompleteError(
                    f"--runner {spread.runner}: {idle} pools of workers ended without finishing one of {len(left)} "
                    "units of work (killed for want of memory?): use fewer --workers or a smaller --batch; what is "
                    "finished is kept, and the same command goes on"
                )
    finally:
        _opened.pop(token, None)


def _one_pool(
    spread: WorkerOptions,
    home: Home,
    opened: Callable[[], Do],
    token: str,
    units: Mapping[U, str],
    back: Callable[[U, Any], None],
) -> None:
    """Submit all units to one pool and take what comes back; results of lost workers are missing."""
    from prefect import flow

    check_runner(spread.runner)
    runner = _task_runner(spread, home)
    before = _under_way.set((opened, token, units, back))  # no variable of the flow: it is pickled with the units
    try:
        flow(name="trials", task_runner=runner, validate_parameters=False, persist_result=False, retries=0)(_trials)()
    finally:
        _under_way.reset(before)


def _trials() -> None:
    from prefect import task
    from prefect.cache_policies import NO_CACHE
    from prefect.futures import as_completed

    from hopbench.flows.orchestration.steps import literal

    opened, token, units, back = _under_way.get()
    futures: dict[Any, Any] = {}
    for unit, title in units.items():
        name = literal(title)
        step = task(name=name, task_run_name=name, cache_policy=NO_CACHE, persist_result=False, retries=0)(work)
        futures[step.submit(token, opened, unit)] = unit
    for future in as_completed(list(futures)):
        try:
            outcome = future.result()
        except Exception as error:  # its worker is gone: the unit is done again
            logging.getLogger(__name__).info("%s was lost: %r", futures[future], error)
            continue
        if isinstance(outcome, HopBenchError):
            raise outcome
        back(futures[future], outcome)


def work(token: str, opened: Callable[[], Do], unit: object) -> Any:
    """Do a unit, opening what its job needs in this process if need be; HopBench's own errors are returned."""
    try:
        with _opening:
            do = _opened.get(token)
            if do is None:
                _opened.clear()  # the runs before it are over
                do = _opened[token] = opened()
        return do(unit)
    except HopBenchError as error:
        return error


def check_runner(runner: str) -> None:
    """Raise InputError where the runner is a Dask cluster by address that does not answer."""
    _, address = runner_parts(runner)
    if not address:
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("--runner dask", "dask") from error
    try:
        with Client(address, timeout=CONNECT_SECONDS, set_as_default=False):
            pass
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--runner dask={address}: no Dask scheduler answers there ({type(error).__name__}): start one with "
            "`dask scheduler`, name it as HOST:PORT, or write --runner dask for workers on this machine"
        ) from error


def workers_of(spread: WorkerOptions) -> int:
    """How many workers there are: as many as asked for, else one for each processor; of a cluster it is a guess."""
    return spread.workers or os.cpu_count() or 1


def _task_runner(spread: WorkerOptions, home: Home) -> Any:
    """Prefect's task runner of that name. Workers' own servers listen on loopback only."""
    kind, address = runner_parts(spread.runner)
    if kind == "dask":
        try:
            from prefect_dask import DaskTaskRunner
        except ImportError as error:
            raise MissingExtraError("--runner dask", "dask") from error
        if address:
            return DaskTaskRunner(address=address)
        cluster = {
            "n_workers": workers_of(spread),
            "threads_per_worker": 1,
            "host": "127.0.0.1",
            "dashboard_address": "127.0.0.1:0",  # None is port 8787, which another run's cluster may have
            "scheduler_kwargs": {"dashboard": False},
            "local_directory": str(home.scratch),
            "silence_logs": logging.CRITICAL,
        }
        return DaskTaskRunner(cluster_kwargs=cluster)
    from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

    return (ProcessPoolTaskRunner if kind == "processes" else ThreadPoolTaskRunner)(max_workers=workers_of(spread))


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


def _open_run(
    options: RunOptions, home: Path, namespace: str, build_key: str, code: Mapping[str, str]
) -> Callable[[Unit], TrialOutcome]:
    strategies = options.labels()
    check_same_code(code, strategies.values())
    benchmark, index = open_benchmark(options, home, namespace, build_key)
    return _ranking(benchmark, index, strategies, options.batch)


def _ranking(
    benchmark: Benchmark, index: Index, strategies: Mapping[str, Strategy], size: int | None
) -> Callable[[Unit], TrialOutcome]:
    """Ranks units; what earlier ones computed for a batch is shared, and only the latest few batches are held."""
    from hopbench.eval.trials.trial import batches
    from hopbench.retrieval.context import Budget
    from hopbench.retrieval.index import Batch

    parts = batches(index, [question.question for question in benchmark.questions], size)
    lock = Lock()

    @lru_cache(MAX_BATCHES)
    def batch(part: int) -> Batch:
        return Batch(index, parts[part].questions)

    def rank(unit: Unit) -> TrialOutcome:
        with lock:
            questions = batch(unit.part)
        return run_unit(unit.label, strategies[unit.label], questions, Budget())

    return rank


def rank_on_workers(
    plan: Plan, options: RunOptions, home: Home, kept: Unfinished, steps: Steps
) -> tuple[dict[str, TrialOutcome], float]:
    """Every label's trial, and the seconds of the work that their batches shared; finished units are in `kept`."""
    whole = {label: outcome for label in plan.strategies if (outcome := kept.get(plan.key_of(label))) is not None}
    missing = [label for label in plan.strategies if label not in whole]
    parts = range(len(plan.parts))
    files = {Unit(part, label): f"{plan.key_of(label)}-{part}of{len(parts)}" for part in parts for label in missing}
    found = {unit: done for unit, file in files.items() if (done := kept.get(file)) is not None}

    def keep(unit: Unit, done: TrialOutcome) -> None:
        found[unit] = done
        kept.put(files[unit], done)

    code, graph = code_here(plan.strategies.values()), (plan.index.store.namespace, str(plan.record["build_key"]))
    elsewhere = partial(_open_run, options.absolute(), home.root, *graph, code)
    here = _ranking(plan.benchmark, plan.index, plan.strategies, options.batch)
    run_units(options, home, elsewhere, here, {one: one.title for one in files if one not in found}, keep)
    for label in missing:
        outcome = merged([found[Unit(part, label)] for part in parts])
        whole[label] = steps(f"latency {label}", lambda: plan.time_calls(outcome))  # noqa: B023 - called at once
        kept.put(plan.key_of(label), whole[label])
    return {label: whole[label] for label in plan.strategies}, shared_seconds(found)

"""Units of work on one of Prefect's task runners, until all are done, even if workers are lost."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, TypeVar

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import runner_parts
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, MissingExtraError, StoreError


@dataclass(frozen=True)
class Failed:
    """An error that a worker returns to the process that submitted the unit; a lost worker returns nothing."""

    message: str
    exit_code: int

    def error(self) -> HopBenchError:
        """The error to raise in that process."""
        kinds = {InputError.exit_code: InputError, StoreError.exit_code: StoreError}
        return kinds.get(self.exit_code, IncompleteError)(self.message)


ATTEMPTS_WITHOUT_PROGRESS = 3
CONNECT_SECONDS = 10


class WorkerContext(Protocol):
    """A job opened in this process: what its units share."""

    def run(self, unit: Any, /) -> Any:
        """Run one unit."""
        ...


class Job(Protocol):
    """What is sent to workers, which open it once; `token` is the same for all its units."""

    @property
    def token(self) -> str:
        """Its name."""
        ...

    def open(self) -> WorkerContext:
        """Open it in this process."""
        ...


class WorkUnit(Protocol):
    """A unit of work, with the name that Prefect shows."""

    @property
    def title(self) -> str:
        """Its name."""
        ...


U = TypeVar("U", bound=WorkUnit)


@dataclass(frozen=True)
class TaskPool:
    """The task runner of that name, and how many workers it has (None: one for each processor)."""

    runner: str
    workers: int | None
    home: Home

    @property
    def size(self) -> int:
        """How many workers there are; of a cluster by address, how many are assumed."""
        return self.workers or os.cpu_count() or 1

    def run(self, job: Job, units: Sequence[U], keep: Callable[[U, Any], None]) -> None:
        """Do all units of a job and call `keep` with each unit and its outcome.

        Raises IncompleteError after three pools in a row that finished nothing.
        """
        left, idle = list(units), 0

        def kept(unit: U, done: Any) -> None:
            left.remove(unit)
            keep(unit, done)

        while left:
            before = len(left)
            self._attempt(job, tuple(left), kept)
            idle = 0 if len(left) < before else idle + 1
            if idle == ATTEMPTS_WITHOUT_PROGRESS:
                raise IncompleteError(
                    f"--runner {self.runner}: {idle} pools of workers ended without finishing one of {len(left)} units "
                    "of work (killed for want of memory?): use fewer --workers or a smaller --batch; what is finished "
                    "is kept, and the same command goes on"
                )

    def _attempt(self, job: Job, units: Sequence[U], keep: Callable[[U, Any], None]) -> None:
        """Submit all units to one pool and keep what comes back; results of lost workers are missing."""
        from prefect import flow, task
        from prefect.cache_policies import NO_CACHE
        from prefect.futures import as_completed

        here = _Here((job, units, keep))

        def trials() -> None:
            job, units, keep = here.held
            futures: dict[Any, U] = {}
            for unit in units:
                name = unit.title.replace("{", "{{").replace("}", "}}")
                step = task(name=name, task_run_name=name, cache_policy=NO_CACHE, persist_result=False, retries=0)(work)
                futures[step.submit(job, unit)] = unit
            for future in as_completed(list(futures)):
                try:
                    done = future.result()
                except Exception as error:  # its worker is gone: the unit is done again
                    logging.getLogger(__name__).info("%s was lost: %r", futures[future], error)
                    continue
                if isinstance(done, Failed):
                    raise done.error()
                keep(futures[future], done)

        self.check_address()
        runner = self.make()
        flow(name="trials", task_runner=runner, validate_parameters=False, persist_result=False, retries=0)(trials)()

    def check_address(self) -> None:
        """Raise InputError where the runner is a Dask cluster by address that does not answer."""
        _, address = runner_parts(self.runner)
        if address:
            _reachable(address)

    def make(self) -> Any:
        """Prefect's task runner of that name. Workers' own servers listen on loopback only."""
        kind, address = runner_parts(self.runner)
        if kind == "dask":
            try:
                from prefect_dask import DaskTaskRunner
            except ImportError as error:
                raise MissingExtraError("--runner dask", "dask") from error
            if address:
                return DaskTaskRunner(address=address)
            cluster = {
                "n_workers": self.size,
                "threads_per_worker": 1,
                "host": "127.0.0.1",
                "dashboard_address": "127.0.0.1:0",  # None is port 8787, which another run's cluster may have
                "scheduler_kwargs": {"dashboard": False},
                "local_directory": str(self.home.scratch),
                "silence_logs": logging.CRITICAL,
            }
            return DaskTaskRunner(cluster_kwargs=cluster)
        from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

        return (ProcessPoolTaskRunner if kind == "processes" else ThreadPoolTaskRunner)(max_workers=self.size)


class _Here:
    """Holds objects that must not leave this process: unpickled in a worker, with the flow, it is empty."""

    def __init__(self, held: Any = None) -> None:
        self.held = held

    def __reduce__(self) -> tuple[type[_Here], tuple[()]]:
        return _Here, ()


def _reachable(address: str) -> None:
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


_contexts: dict[str, WorkerContext] = {}
_opening = Lock()


def share_context(token: str, context: WorkerContext) -> None:
    """Let workers in this process use contexts that are already open here."""
    _contexts[token] = context


def drop_context(token: str) -> None:
    """Forget a job's context."""
    _contexts.pop(token, None)


def work(job: Job, unit: object) -> Any:
    """Do a unit of a job, opening the job in this process if need be; HopBench's own errors are returned."""
    try:
        with _opening:
            context = _contexts.get(job.token)
            if context is None:
                _contexts.clear()  # the runs before it are over
                context = _contexts[job.token] = job.open()
        return context.run(unit)
    except HopBenchError as error:
        return Failed(str(error), error.exit_code)

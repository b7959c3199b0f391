"""`--runner threads|processes|dask[:ADDRESS]`: a run's trials × question batches on Prefect's task runners.

Each unit is kept as it comes back. A worker that is killed loses the unit it was at, which another does again; when a
whole pool breaks, what is missing is submitted to a new one. Results are put together in the order of the questions,
so they are the same on every runner. Latency is measured afterwards, one call at a time, in this process.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.batch_work import Unit, UnitOutcome, merged, shared_seconds
from flows.options import RunOptions, runner_parts
from flows.scale_work import Desk, Failed, Job, leave_desk, use_desk, work
from retrieval.errors import IncompleteError, InputError, MissingExtraError

if TYPE_CHECKING:
    from eval.evaluate import Plan
    from eval.trial import TrialOutcome
    from eval.unfinished import Unfinished
    from flows.home import Home
    from flows.prefect_runtime import PrefectRuntime
    from retrieval.graph.build import Steps

ATTEMPTS_WITHOUT_PROGRESS = 3
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class ScaledOut:
    """Ranks on the runner that the options name: an `eval.evaluate.Ranker`."""

    options: RunOptions
    home: Home
    runtime: PrefectRuntime

    def __call__(self, plan: Plan, kept: Unfinished, steps: Steps) -> tuple[dict[str, TrialOutcome], float]:
        """Every label's trial, and what their batches shared."""
        from eval.evaluate import measured

        whole = {label: done for label in plan.strategies if (done := kept.get(plan.key_of(label))) is not None}
        missing = [label for label in plan.strategies if label not in whole]
        parts = len(plan.parts)
        units = [Unit(part, label) for part in range(parts) for label in missing]
        found = self._all(plan, kept, units) if units else {}
        for label in missing:
            outcome = merged([found[Unit(part, label)] for part in range(parts)])
            whole[label] = steps(f"latency {label}", lambda: measured(plan, label, outcome))  # noqa: B023 - called at once
            kept.put(plan.key_of(label), whole[label])
        return {label: whole[label] for label in plan.strategies}, shared_seconds(found)

    def _all(self, plan: Plan, kept: Unfinished, units: Sequence[Unit]) -> dict[Unit, UnitOutcome]:
        names = {unit: f"{plan.key_of(unit.label)}-{unit.part}of{len(plan.parts)}" for unit in units}
        found = {unit: done for unit in units if (done := kept.get_unit(names[unit])) is not None}
        token, idle = secrets.token_hex(8), 0
        record = plan.record
        job = Job(token, _absolute(self.options), self.home.root, plan.index.store.namespace, str(record["build_key"]))
        use_desk(token, Desk(plan.benchmark, plan.index, self.options))

        def keep(unit: Unit, done: UnitOutcome) -> None:
            found[unit] = done
            kept.put_unit(names[unit], done)

        try:
            while todo := [unit for unit in units if unit not in found]:
                before = len(found)
                self._attempt(job, todo, keep)
                idle = 0 if len(found) > before else idle + 1
                if idle == ATTEMPTS_WITHOUT_PROGRESS:
                    raise IncompleteError(
                        f"--runner {self.options.runner}: {idle} pools of workers ended without finishing one of "
                        f"{len(todo)} units of work (killed for want of memory?): use fewer --workers or a smaller "
                        "--batch; what is finished is kept, and the same command goes on"
                    )
        finally:
            leave_desk(token)
        return found

    def _attempt(self, job: Job, units: Sequence[Unit], keep: Callable[[Unit, UnitOutcome], None]) -> None:
        """Submit all units to one pool and keep what comes back; what its workers took with them is not there."""
        from prefect import flow, task
        from prefect.cache_policies import NO_CACHE
        from prefect.futures import as_completed

        def trials() -> None:
            futures: dict[Any, Unit] = {}
            for unit in units:
                name = f"trial {unit.label} batch {unit.part}".replace("{", "{{").replace("}", "}}")
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

        runner = make_runner(self.options, self.home)
        flow(name="trials", task_runner=runner, validate_parameters=False, persist_result=False, retries=0)(trials)()


def _absolute(options: RunOptions) -> RunOptions:
    """The options with paths that mean the same from a worker's folder."""
    dataset = str(Path(options.dataset).absolute()) if Path(options.dataset).exists() else options.dataset
    triples = options.triples.absolute() if options.triples else None
    mapping = options.mapping.absolute() if options.mapping else None
    return replace(options, dataset=dataset, triples=triples, mapping=mapping)


def make_runner(options: RunOptions, home: Home) -> Any:
    """Prefect's task runner of that name. Workers' own servers listen on loopback only."""
    kind, address = runner_parts(options.runner)
    workers = options.workers or os.cpu_count() or 1
    if kind == "dask":
        try:
            from prefect_dask import DaskTaskRunner
        except ImportError as error:
            raise MissingExtraError("--runner dask", "dask") from error
        if address:
            _reachable(address)
            return DaskTaskRunner(address=address)
        cluster = {
            "n_workers": workers,
            "threads_per_worker": 1,
            "host": "127.0.0.1",
            "dashboard_address": None,
            "local_directory": str(home.scratch),
            "silence_logs": logging.CRITICAL,
        }
        return DaskTaskRunner(cluster_kwargs=cluster)
    from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

    return (ProcessPoolTaskRunner if kind == "processes" else ThreadPoolTaskRunner)(max_workers=workers)


def _reachable(address: str) -> None:
    from distributed import Client

    try:
        with Client(address, timeout=CONNECT_SECONDS, set_as_default=False):
            pass
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--runner dask:{address}: no Dask scheduler answers there ({type(error).__name__}): start one with "
            "`dask scheduler`, name it as HOST:PORT, or write --runner dask for workers on this machine"
        ) from error

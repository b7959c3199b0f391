"""`--runner pool:NAME`: units of work on the workers of one of Prefect's work pools, on this machine or others.

The process that has the work writes it to a folder of the home, which all share, and starts as many flow runs
(`rank_units`) in the pool as there are to be workers. Each takes units until none is left: it claims one by creating a
file, which only one can, and writes what came of it. The claims of a flow run that ended, or whose process sends no
heartbeat any more, are released, and another one is started. Nothing is pickled: work and results are JSON, and its
folder is named by the flow run's one parameter.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar, cast

from hopbench.flows.orchestration.failed import Failed
from hopbench.flows.orchestration.spool import Portable, Spool
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import IncompleteError, InputError

ENTRYPOINT = "hopbench.flows.orchestration.pool_flow.rank_units"
POLL_SECONDS = 0.5
STATES_SECONDS = 3.0
WAITING_SECONDS = 60.0
SILENT_SECONDS = {"RUNNING": 120.0, "PENDING": 900.0}
"""How long a flow run may show no change: a worker beats every 5 s; before that, an image may have to be fetched."""
ATTEMPTS_WITHOUT_PROGRESS = 3

_log = logging.getLogger(__name__)
U = TypeVar("U")


@dataclass
class WorkPool:
    """A work pool by name, and how many flow runs work in it at a time."""

    name: str
    lanes: int
    home: Home
    _runs: dict[str, str] = field(default_factory=dict)  # id → type of its state
    _signs: dict[str, tuple[object, float]] = field(default_factory=dict)  # id → state and beat, seen since when

    def check(self) -> None:
        """Raise InputError where no server is named, or the server has no such pool."""
        from prefect.client.orchestration import get_client
        from prefect.exceptions import ObjectNotFound
        from prefect.settings import PREFECT_API_URL

        if not (os.environ.get("PREFECT_API_URL") or PREFECT_API_URL.value()):
            raise InputError(
                f"--runner pool:{self.name}: a work pool is one of a server that its workers reach: name it with "
                "PREFECT_API_URL"
            )
        with get_client(sync_client=True) as client:
            try:
                client.read_work_pool(self.name)
            except ObjectNotFound as error:
                raise InputError(
                    f"--runner pool:{self.name}: the server has no such work pool: make one with "
                    f"`prefect work-pool create --type process {self.name}`, and start its workers"
                ) from error

    def run(self, job: Portable, units: Sequence[U], keep: Callable[[U, Any], None]) -> None:
        """Have the pool do all units, and call `keep` with each and its outcome, as they come back."""
        self.check()
        token = secrets.token_hex(8)
        spool = Spool.of(self.home, token)
        left = dict(enumerate(units))
        with self._written(spool, job, units):
            deployment, idle, asked, begun = self._deployment(), 0, 0.0, time.monotonic()
            while left:
                came = spool.done() & left.keys()
                for number in sorted(came):
                    keep(left.pop(number), job.outcome_from_json(_of(spool.outcome(number))))
                idle = 0 if came else idle
                if left and time.monotonic() - asked > STATES_SECONDS:
                    if asked:
                        self._ask(spool)
                        spool.release(self._over())
                    if not self._under_way():
                        idle += 1
                        self._refuse_stuck(idle, len(left))
                        self._start(deployment, token, min(self.lanes, len(left)))
                    begun = self._warn_of_waiting(begun)
                    asked = time.monotonic()
                if left:
                    time.sleep(POLL_SECONDS)

    @contextmanager
    def _written(self, spool: Spool, job: Portable, units: Sequence[Any]) -> Iterator[None]:
        try:
            spool.write(job, units)
            yield
        finally:
            shutil.rmtree(spool.folder, ignore_errors=True)  # workers find no more work, and end
            self._cancel()

    def _deployment(self) -> Any:
        """The pool's deployment of `rank_units`, made or brought up to date."""
        from prefect.types.entrypoint import EntrypointType

        module, _, name = ENTRYPOINT.rpartition(".")
        made: Any = getattr(import_module(module), name).to_deployment(
            f"pool-{self.name}",
            work_pool_name=self.name,
            tags=["hopbench"],
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        return made.apply()

    def _start(self, deployment: Any, token: str, count: int) -> None:
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            for _ in range(count):
                run = client.create_flow_run_from_deployment(deployment, parameters={"job": token})
                self._runs[str(run.id)] = "SCHEDULED"

    def _under_way(self) -> list[str]:
        return [run for run, state in self._runs.items() if state not in FINAL]

    def _over(self) -> set[str]:
        """The flow runs that are over or lost; one that was given up may have claimed a unit later."""
        return {run for run, state in self._runs.items() if state in FINAL}

    def _ask(self, spool: Spool) -> None:
        """Ask for the states of the flow runs under way, and give up those that are lost."""
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            for run in self._under_way():
                state = client.read_flow_run(cast("Any", run)).state
                self._runs[run] = state.type.value if state else "SCHEDULED"
                if self._silent(run, spool.last_beat(run)):
                    self._give_up(client, run)

    def _silent(self, run: str, beat: int | None) -> bool:
        """Whether a flow run has shown no change for too long, by the clock of this machine alone."""
        sign, now = (self._runs[run], beat), time.monotonic()
        seen, since = self._signs.get(run, (None, now))
        if seen != sign:
            self._signs[run] = sign, now
            return False
        return now - since > SILENT_SECONDS.get(self._runs[run], float("inf"))

    def _give_up(self, client: Any, run: str) -> None:
        """Mark a flow run whose worker is lost; its units go to another one."""
        from prefect.states import Crashed

        silent = SILENT_SECONDS[self._runs[run]]
        reason = f"no heartbeat of its worker for {silent:g} s: killed, or its machine or the shared folder is gone"
        client.set_flow_run_state(run, Crashed(message=reason), force=True)
        self._runs[run] = "CRASHED"
        _log.warning("--runner pool:%s: flow run %s: %s. Its units go to another one", self.name, run, reason)

    def _cancel(self) -> None:
        """Cancel what has not begun; what works finds no more units."""
        from prefect.client.orchestration import get_client
        from prefect.states import Cancelled

        with suppress(Exception), get_client(sync_client=True) as client:
            for run in self._under_way():
                state = client.read_flow_run(cast("Any", run)).state
                if state is not None and (state.is_scheduled() or state.is_pending()):
                    client.set_flow_run_state(cast("Any", run), Cancelled(message="the work is done"), force=True)

    def _warn_of_waiting(self, begun: float) -> float:
        if time.monotonic() - begun < WAITING_SECONDS or "RUNNING" in self._runs.values():
            return begun
        _log.warning(
            "no worker of the pool %s has begun: prefect worker start --pool %s, with this server as PREFECT_API_URL",
            self.name,
            self.name,
        )
        return time.monotonic()

    def _refuse_stuck(self, idle: int, left: int) -> None:
        if idle > ATTEMPTS_WITHOUT_PROGRESS:
            raise IncompleteError(
                f"--runner pool:{self.name}: {idle - 1} times its flow runs ended without finishing one of {left} "
                "units of work (their logs on Prefect's pages say why); what is finished is kept, and the same "
                "command goes on"
            )


FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


def _of(done: Mapping[str, Any]) -> Any:
    """What came of a unit; raises the error of a worker."""
    if "error" in done:
        raise Failed(str(done["error"]), int(done["exit_code"])).error()
    return done["outcome"]

"""Prefect's API server in the background while the main process computes, or the flow run already under way."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Self

import psutil

from hopbench.flows.orchestration.pages import PAGES_VARIABLE
from hopbench.flows.orchestration.server import STOP_SECONDS, OwnServer
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import IncompleteError

if TYPE_CHECKING:
    from prefect.settings import Settings

_inside: ContextVar[bool] = ContextVar("hopbench_inside_flow_run", default=False)


def _log_to_runs() -> None:
    """Attach a handler to the logger `hopbench` that sends what is logged within a flow run to its log; once."""
    from prefect.context import FlowRunContext, TaskRunContext
    from prefect.logging.handlers import APILogHandler

    class RunLogHandler(APILogHandler):
        def emit(self, record: logging.LogRecord) -> None:
            if FlowRunContext.get() or TaskRunContext.get():
                super().emit(record)

    log = logging.getLogger("hopbench")
    if not any(type(handler).__name__ == RunLogHandler.__name__ for handler in log.handlers):
        log.addHandler(RunLogHandler())
        logging.getLogger("bm25s").propagate = False  # it sets its own level to DEBUG, and Prefect's console shows that
        if log.level == logging.NOTSET:
            log.setLevel(logging.INFO)


PREFIX = "process"
CLOCK_SECONDS = 60  # by which a start time may move when the system clock is set
MAX_RUNS = 200  # read at a time; Prefect's limit


def process_tag(pid: int | None = None) -> str:
    """`process:HOST:PID:START` of a process, by default this one; START is when it started, in seconds (Unix time)."""
    pid = os.getpid() if pid is None else pid
    return f"{PREFIX}:{socket.gethostname()}:{pid}:{_started(pid) or ''}"


def is_gone(tag: str) -> bool:
    """Whether the tagged process ran on this host and has ended; False for processes of other hosts."""
    prefix, _, rest = tag.partition(":")
    host, pid, start = [*rest.rsplit(":", 2), "", ""][:3]
    if prefix != PREFIX or host != socket.gethostname() or not pid.isdigit():
        return False
    if not psutil.pid_exists(int(pid)):
        return True
    now = _started(int(pid))
    return bool(start) and now is not None and abs(float(now) - float(start)) > CLOCK_SECONDS


def _started(pid: int) -> str | None:
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return None


def mark_crashed() -> list[str]:
    """Mark HopBench's running flow runs whose process ran on this host and is gone; returns the runs' names."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.states import Crashed

    under_way = {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}
    wanted = FlowRunFilter.model_validate({"tags": {"all_": ["hopbench"]}, "state": under_way})
    marked = []
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=wanted, limit=MAX_RUNS):
            owners = [tag for tag in run.tags if tag.startswith(f"{PREFIX}:")]
            if owners and all(map(is_gone, owners)):
                pid = owners[0].split(":")[-2]
                reason = f"process {pid} was killed, or the machine stopped; found at a later start"
                client.set_flow_run_state(run.id, Crashed(message=reason), force=True)
                marked.append(run.name)
    return marked


START_SECONDS = 300  # alone it needs 10; on a machine with other work it was seen to need over 120


class PrefectRuntime:
    """Prefect's API for the length of one command: the server at PREFECT_API_URL, else our own on 127.0.0.1.

    Our own keeps its SQLite database in `home.prefect`, its output in `home.logs/prefect-server.log`, and stops with
    this process however it ends. Several may share a home. With `serving_port` (0: any) it is a whole server:
    schedules, automations and pages, on that port. Inside a flow run nothing is started: its API is taken.
    """

    def __init__(self, home: Home, serving_port: int | None = None) -> None:
        home.prepare()
        home.apply_environment()
        self._ready = self._in_flow_run = _inside.get()
        self._adopted = False
        self._server: OwnServer | None = None
        self._settings: Settings | None = None
        self.answering = Event()
        """Set once no server is starting: what else takes processors may begin."""
        self.api_url = os.environ.get("PREFECT_API_URL", "")
        if self._in_flow_run or self.api_url:
            self.answering.set()
        else:
            self._server = OwnServer(home, serving_port)
            self.api_url = self._server.api_url
            os.environ.update({"PREFECT_API_URL": self.api_url, PAGES_VARIABLE: "1"})

    def wait(self, seconds: float = START_SECONDS) -> str:
        """Block until the API answers; returns its URL. Raises IncompleteError with the log's end."""
        if self._ready:
            return self.api_url
        begun = time.monotonic()
        # What the first flow run would import takes 3 s, in which the server starts too.
        import prefect.artifacts
        import prefect.events
        import prefect.flow_engine
        import prefect.main
        import prefect.task_engine  # noqa: F401
        from prefect.client.orchestration import get_client
        from prefect.context import refresh_global_settings_context

        if self._server is not None:
            self._server.wait(seconds - (time.monotonic() - begun))
        refresh_global_settings_context()  # prefect may have been imported before PREFECT_API_URL was known
        self.answering.set()
        if self._server is None:
            with get_client(sync_client=True) as client:
                reason = client.api_healthcheck()
            if reason is not None:
                raise IncompleteError(
                    f"PREFECT_API_URL: no Prefect API answers at {self.api_url} ({reason!r}). "
                    "Start that server, unset the variable to use our own, or pass --no-prefect."
                )
        self._ready = True
        _log_to_runs()
        with self.flow_settings():
            mark_crashed()
        return self.api_url

    def check(self) -> None:
        """Raise ServerEndedError where our own server has ended."""
        if self._server is not None:
            self._server.check()

    def adopts(self) -> bool:
        """Whether a flow's body belongs into the flow run that is under way: once, that of the flow Prefect called."""
        first, self._adopted = self._in_flow_run and not self._adopted, True
        return first

    def flow_settings(self) -> AbstractContextManager[object]:
        """Prefect's settings while a flow runs: this API, and no heartbeats to our own server.

        Nothing reads them there, and stopping their thread costs each flow up to a second.
        """
        if self._in_flow_run:
            return nullcontext()
        from prefect.context import SettingsContext, get_settings_context
        from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

        if self._settings is None:  # Prefect builds its settings anew, which takes a tenth of a second
            quiet = {} if self._server is None else {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
            with temporary_settings({PREFECT_API_URL: self.api_url, **quiet}) as settings:
                self._settings = settings
        return SettingsContext(profile=get_settings_context().profile, settings=self._settings)

    def stop(self) -> None:
        """Send what is still queued, and stop our own server. Harmless when called twice."""
        server, self._server = self._server, None
        if server is None:
            return
        if self._ready and server.process.poll() is None:
            from prefect.events.worker import EventsWorker
            from prefect.logging.handlers import APILogWorker

            EventsWorker.drain_all(timeout=STOP_SECONDS)  # task runs are recorded from events
            APILogWorker.drain_all(timeout=STOP_SECONDS)
        for name in ("PREFECT_API_URL", PAGES_VARIABLE):
            os.environ.pop(name, None)
        server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


@contextmanager
def inside_flow_run() -> Iterator[None]:
    """Mark what follows as the body of the flow run that is under way, and have our log shown with it."""
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext, TagsContext
    from prefect.settings import get_current_settings

    settings = get_current_settings()  # what Prefect has read; the home's would take its place
    os.environ.setdefault("PREFECT_HOME", str(settings.home))
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", settings.logging.level)
    _log_to_runs()
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        with get_client(sync_client=True) as client:  # should the process be killed, the next start can tell
            tags = {tag for tag in context.flow_run.tags if not tag.startswith(f"{PREFIX}:")}
            client.update_flow_run(context.flow_run.id, tags=sorted({*tags, "hopbench", process_tag()}))
    token = _inside.set(True)
    try:
        with TagsContext(current_tags=set()):  # the flow run's, which its tasks would take over (see `Steps.task`)
            yield
    finally:
        _inside.reset(token)

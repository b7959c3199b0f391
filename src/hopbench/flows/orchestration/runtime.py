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
from hopbench.flows.orchestration.server import STOP_SECONDS, OwnServer, PrefectUnavailableError
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from prefect.settings import Settings

LOGGER = "hopbench"


def log_to_runs() -> None:
    """Attach a handler to the logger `hopbench` that sends what is logged within a flow run to its log; once."""
    from prefect.context import FlowRunContext, TaskRunContext
    from prefect.logging.handlers import APILogHandler

    class RunLogHandler(APILogHandler):
        def emit(self, record: logging.LogRecord) -> None:
            if FlowRunContext.get() or TaskRunContext.get():
                super().emit(record)

    log = logging.getLogger(LOGGER)
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
    """When a process started; None where the system does not report it."""
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return None


def mark_crashed() -> list[str]:
    """Mark HopBench's running flow runs whose process ran on this host and is gone; returns the runs' names."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        FlowRunFilterTags,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.states import Crashed

    under_way = FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
    wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=["hopbench"]), state=FlowRunFilterState(type=under_way))
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
    this process however it ends. Several may share a home.
    """

    def __init__(self, home: Home, serving_port: int | None = None) -> None:
        self._home = home
        self._serving_port = serving_port
        self._server: OwnServer | None = None
        self._ready = False
        self._settings: Settings | None = None
        self.answering = Event()
        """Set once no server is starting: what else takes processors may begin."""
        self.api_url = os.environ.get("PREFECT_API_URL", "")

    @classmethod
    def start(cls, home: Home, *, serving_port: int | None = None) -> Self:
        """Start the server, if one is needed, and return without waiting for it.

        With `serving_port` (0: any) it is a whole server: schedules, automations and pages, on that port.
        """
        runtime = cls(home, serving_port)
        home.prepare()
        home.apply_environment()
        if runtime.api_url:
            runtime.answering.set()
        else:
            runtime._start_server()
        return runtime

    def _start_server(self) -> None:
        self._server = OwnServer(self._home, self._serving_port)
        self.api_url = self._server.api_url
        os.environ.update({"PREFECT_API_URL": self.api_url, PAGES_VARIABLE: "1"})

    def wait(self, seconds: float = START_SECONDS) -> str:
        """Block until the API answers; returns its URL. Raises PrefectUnavailableError with the log's end."""
        if self._ready:
            return self.api_url
        begun = time.monotonic()
        from prefect.context import refresh_global_settings_context  # takes 3 s, in which the server starts too

        _load_engine()
        if self._server is not None:
            self._server.wait(seconds - (time.monotonic() - begun))
        refresh_global_settings_context()  # prefect may have been imported before PREFECT_API_URL was known
        self.answering.set()
        if self._server is None:
            self._check_given_server()
        self._ready = True

        log_to_runs()
        with self.flow_settings():
            mark_crashed()
        return self.api_url

    def _check_given_server(self) -> None:
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            reason = client.api_healthcheck()
        if reason is not None:
            raise PrefectUnavailableError(
                f"PREFECT_API_URL: no Prefect API answers at {self.api_url} ({reason!r}). "
                "Start that server, unset the variable to use our own, or pass --no-prefect."
            )

    def check(self) -> None:
        """Raise ServerEndedError where our own server has ended."""
        if self._server is not None:
            self._server.check()

    def adopts(self) -> bool:
        """Whether a flow's body belongs into the flow run that is under way; not here, where a flow is to begin."""
        return False

    def flow_settings(self) -> AbstractContextManager[object]:
        """Prefect's settings while a flow runs: this API, and no heartbeats to our own server.

        Nothing reads them there, and stopping their thread costs each flow up to a second.
        """
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
            _drain()
        for name in ("PREFECT_API_URL", PAGES_VARIABLE):
            os.environ.pop(name, None)
        server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


def _load_engine() -> None:
    """Import what the first flow run would import, while the server starts."""
    import prefect.artifacts
    import prefect.events
    import prefect.flow_engine
    import prefect.main
    import prefect.task_engine  # noqa: F401


def _drain() -> None:
    """Send the events and logs that Prefect's client has queued: task runs are recorded from its events."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    EventsWorker.drain_all(timeout=STOP_SECONDS)
    APILogWorker.drain_all(timeout=STOP_SECONDS)


_inside: ContextVar[bool] = ContextVar("hopbench_inside_flow_run", default=False)


class FlowRunRuntime(PrefectRuntime):
    """Prefect's API of the flow run that is under way."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._adopted = False

    @classmethod
    def start(cls, home: Home, *, serving_port: int | None = None) -> Self:
        """Nothing is to be started."""
        home.prepare()
        home.apply_environment()
        runtime = cls(home)
        runtime.answering.set()
        return runtime

    def wait(self, seconds: float = 0) -> str:
        """The API answers: the flow run began on it."""
        return self.api_url

    def adopts(self) -> bool:
        """True once: the outermost flow is the one that Prefect called."""
        first, self._adopted = not self._adopted, True
        return first

    def flow_settings(self) -> AbstractContextManager[object]:
        """The caller's settings, unchanged."""
        return nullcontext()


def open_runtime(home: Home) -> PrefectRuntime:
    """The API of the flow run that is under way; of none, a server for the length of this command."""
    return (FlowRunRuntime if _inside.get() else PrefectRuntime).start(home)


@contextmanager
def inside_flow_run() -> Iterator[None]:
    """Mark what follows as the body of the flow run that is under way, and have our log shown with it."""
    _keep_prefects_settings()
    log_to_runs()
    _name_process()
    from prefect.context import TagsContext

    token = _inside.set(True)
    try:
        with TagsContext(current_tags=set()):  # the flow run's, which its tasks would take over (see `steps.TaskKind`)
            yield
    finally:
        _inside.reset(token)


def _keep_prefects_settings() -> None:
    """Have the settings that Prefect has read stand in the environment, where the home's would take their place."""
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    os.environ.setdefault("PREFECT_HOME", str(settings.home))
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", settings.logging.level)


def _name_process() -> None:
    """Tag the run with its process: should that be killed, the next start can tell."""
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    with get_client(sync_client=True) as client:
        tags = {tag for tag in context.flow_run.tags if not tag.startswith("process:")}
        client.update_flow_run(context.flow_run.id, tags=sorted({*tags, "hopbench", process_tag()}))

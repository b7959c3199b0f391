"""Prefect's API server in the background, while the main process computes.

    with PrefectRuntime.start(home) as runtime:      # returns at once; the server needs 7-20 s
        vectors = embed(passages)                    # meanwhile
        run_flow("evaluate", lambda step: step("score", score, vectors), runtime=runtime)

Nothing here imports prefect before `wait()`.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hopbench.flows.orchestration.own_server import STOP_SECONDS, OwnServer, PrefectUnavailableError
from hopbench.flows.orchestration.pages import OURS
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from prefect.settings import Settings

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
        os.environ.update({"PREFECT_API_URL": self.api_url, OURS: "1"})

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
        from hopbench.flows.orchestration.processes import mark_crashed
        from hopbench.flows.orchestration.run_log import log_to_runs

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
        for name in ("PREFECT_API_URL", OURS):
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

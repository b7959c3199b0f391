"""Prefect's API server in the background, while the main process computes.

    with PrefectRuntime.start(home) as runtime:      # returns at once; the server needs 7-20 s
        vectors = embed(passages)                    # meanwhile
        run_flow("evaluate", lambda step: step("score", score, vectors), runtime=runtime)

Nothing here imports prefect before `wait()`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from hopbench.flows.orchestration.pages import OURS
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import IncompleteError, InputError
from hopbench.retrieval.support.resources import exhausted_by_message, full
from hopbench.retrieval.support.sqlite_files import damage, heal

START_SECONDS = 300  # alone it needs 10; on a machine with other work it was seen to need over 120
STOP_SECONDS = 10
LOG_TAIL_LINES = 15

# An ephemeral server only records runs: these services poll, stream or react, and cost time without a reader.
_SERVER_ENVIRONMENT = {
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_EVENTS_STREAM_OUT_ENABLED": "false",
    "PREFECT_SERVER_LOGS_STREAM_OUT_ENABLED": "false",
}


class PrefectUnavailableError(IncompleteError):
    """Prefect's API could not be started or reached."""


class PrefectRuntime:
    """Prefect's API for the length of one command: the server at PREFECT_API_URL, else our own on 127.0.0.1.

    Our own keeps its SQLite database in `home.prefect`, its output in `home.logs/prefect-server.log`, and stops with
    this process however it ends. Several may share a home.
    """

    def __init__(self, home: Home, serving_port: int | None = None) -> None:
        self._home = home
        self._serving_port = serving_port
        self._log = home.logs / "prefect-server.log"
        self._server: subprocess.Popen[bytes] | None = None
        self._ready = False
        self.api_url = os.environ.get("PREFECT_API_URL", "")

    @classmethod
    def start(cls, home: Home, *, serving_port: int | None = None) -> Self:
        """Start the server, if one is needed, and return without waiting for it.

        With `serving_port` (0: any) it is a whole server: schedules, automations and pages, on that port.
        """
        runtime = cls(home, serving_port)
        home.prepare()
        home.apply_environment()
        if not runtime.api_url:
            runtime._start_server()
        return runtime

    def _start_server(self) -> None:
        if damage(self._home.prefect_db) is not None:
            heal(self._home.prefect_db, "what is lost of past flow runs is only their history")
        with socket.socket() as listener, self._log.open("wb") as log:
            self._bind(listener)
            self.api_url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
            self._server = subprocess.Popen(
                [
                    sys.executable,
                    *("-P", "-m", "hopbench.flows.orchestration.server"),
                    *(str(listener.fileno()), str(self._home.prefect / "start.lock")),
                    *(() if self._serving_port is None else (str(self._home.root),)),
                ],
                env=self._own_origin()
                | os.environ
                | (_SERVER_ENVIRONMENT if self._serving_port is None else self._pages()),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # Ctrl-C is for the main process, which still wants to record the failure
            )
        os.environ.update({"PREFECT_API_URL": self.api_url, OURS: "1"})

    def _own_origin(self) -> dict[str, str]:
        """Prefect allows every origin: any site open in a browser here could read Secret blocks and start flows."""
        return {"PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.api_url.removesuffix("/api")}

    def _pages(self) -> dict[str, str]:
        """Settings of a server with pages, which otherwise ask port 4200 for everything.

        An address without host and port is the one that the browser has, through a tunnel too. The pages' files are
        made in the home, since the installation may be read-only.
        """
        return {
            "PREFECT_UI_API_URL": "/api",
            "PREFECT_UI_STATIC_DIRECTORY": str(self._home.prefect / "pages"),
            "PREFECT_SERVER_UI_V2_ENABLED": "false",  # its new pages report to its makers: see `without_third_parties`
            "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        }

    def _bind(self, listener: socket.socket) -> None:
        port = self._serving_port or 0
        if port:  # a restart takes the port again at once
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"--port {port} cannot be used on 127.0.0.1 ({error.strerror}): end what listens there, or name another"
            ) from error

    def wait(self, seconds: float = START_SECONDS) -> str:
        """Block until the API answers; returns its URL. Raises PrefectUnavailableError with the log's end."""
        if self._ready:
            return self.api_url
        deadline = time.monotonic() + seconds
        from prefect.context import refresh_global_settings_context  # takes 3 s, in which the server starts too

        if self._server is not None:
            self._poll(self._server, deadline)
        refresh_global_settings_context()  # prefect may have been imported before PREFECT_API_URL was known
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

    def _poll(self, server: subprocess.Popen[bytes], deadline: float) -> None:
        while server.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.api_url}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        code = server.poll()
        lacking = exhausted_by_message(_tail(self._log), self._home.prefect) or full(self._home.prefect)
        if lacking is not None:
            raise PrefectUnavailableError(f"Prefect's API server did not start: {lacking}")
        what = "did not answer in time" if code is None else f"ended with code {code} before it answered"
        raise PrefectUnavailableError(
            f"Prefect's API server {what}. Try again, name a running server with PREFECT_API_URL, or pass "
            f"--no-prefect. The end of {self._log}:\n{_tail(self._log)}"
        )

    def adopts(self) -> bool:
        """Whether a flow's body belongs into the flow run that is under way; not here, where a flow is to begin."""
        return False

    def flow_settings(self) -> AbstractContextManager[object]:
        """Prefect's settings while a flow runs: this API, and no heartbeats to our own server.

        Nothing reads them there, and stopping their thread costs each flow up to a second.
        """
        from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

        quiet = {} if self._server is None else {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        return temporary_settings({PREFECT_API_URL: self.api_url, **quiet})

    def stop(self) -> None:
        """Send what is still queued, and stop our own server. Harmless when called twice."""
        server, self._server = self._server, None
        if server is None:
            return
        if self._ready:
            _drain()
        for name in ("PREFECT_API_URL", OURS):
            os.environ.pop(name, None)
        cast("IO[bytes]", server.stdin).close()  # it is a pipe, and its end is the server's
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])


def _drain() -> None:
    """Send the events and logs that Prefect's client has queued: task runs are recorded from its events."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    EventsWorker.drain_all(timeout=STOP_SECONDS)
    APILogWorker.drain_all(timeout=STOP_SECONDS)

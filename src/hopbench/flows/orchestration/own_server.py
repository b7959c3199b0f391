"""Prefect's API server of our own: its process, started, awaited and stopped.

Nothing here imports prefect.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, cast

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.ports import listener_on
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError
from hopbench.retrieval.support.resources import exhausted_by_message, full
from hopbench.retrieval.support.sqlite_files import damage, heal

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


class ServerEndedError(HopBenchError):
    """Prefect's API server ended, by itself or killed, while its pages were served."""


class OwnServer:
    """Prefect's API server on 127.0.0.1 with its SQLite database in `home.prefect`; it ends with this process.

    With `serving_port` (0: any) it is a whole server: schedules, automations and pages, on that port. Raises InputError
    where the port is taken.
    """

    def __init__(self, home: Home, serving_port: int | None = None) -> None:
        self._home = home
        self._log = home.logs / "prefect-server.log"
        if damage(home.prefect_db) is not None:
            heal(home.prefect_db, "what is lost of past flow runs is only their history")
        with listener_on(serving_port or 0) as listener, self._log.open("wb") as log:
            self.api_url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    *("-P", "-m", "hopbench.flows.orchestration.server"),
                    *(str(listener.fileno()), str(home.prefect / "start.lock")),
                    *(() if serving_port is None else (str(home.root),)),
                ],
                env=self._own_pages_only()
                | os.environ
                | (_SERVER_ENVIRONMENT if serving_port is None else settings_of_pages(home)),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # Ctrl-C is for the main process, which still wants to record the failure
            )

    def _own_pages_only(self) -> dict[str, str]:
        """Prefect's own protection from other sites' pages, which is off by default; `guard` does the rest."""
        return {
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.api_url.removesuffix("/api"),
            "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        }

    def wait(self, seconds: float) -> None:
        """Block until the API answers. Raises PrefectUnavailableError with the log's end."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.api_url}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        code = self.process.poll()
        lacking = exhausted_by_message(_tail(self._log), self._home.prefect) or full(self._home.prefect)
        if lacking is not None:
            raise PrefectUnavailableError(f"Prefect's API server did not start: {lacking}")
        what = "did not answer in time" if code is None else f"ended with code {code} before it answered"
        raise PrefectUnavailableError(
            f"Prefect's API server {what}. Try again, name a running server with PREFECT_API_URL, or pass "
            f"--no-prefect. The end of {self._log}:\n{_tail(self._log)}"
        )

    def check(self) -> None:
        """Raise ServerEndedError where the process has ended."""
        code = self.process.poll()
        if code is not None:
            raise ServerEndedError(
                f"Prefect's API server ended with code {code}: run the same command again, which finds its schedules "
                f"and runs as they were. The end of {self._log}:\n{_tail(self._log) or '(empty)'}"
            )

    def stop(self) -> None:
        """End the process, and wait for it."""
        cast("IO[bytes]", self.process.stdin).close()  # it is a pipe, and its end is the server's
        self.process.terminate()  # a fork of this process may still have that pipe open
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def settings_of_pages(home: Home) -> dict[str, str]:
    """Settings of a server with pages, which otherwise ask port 4200 for everything.

    An address without host and port is the one that the browser has, through a tunnel too. The pages' files are
    made in the home, since the installation may be read-only.
    """
    return {
        "PREFECT_UI_API_URL": "/api",
        "PREFECT_UI_STATIC_DIRECTORY": str(home.prefect / "pages"),
        "PREFECT_SERVER_UI_V2_ENABLED": "false",  # its new pages report to its makers: see `without_third_parties`
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])

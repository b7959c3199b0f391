"""Prefect's API server: started, awaited and stopped by this process, as a child that never outlives its parent."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit

from hopbench.flows.orchestration.pages import routes
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import listener_on
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, exhausted_by_message, full
from hopbench.retrieval.support.locking import exclusive
from hopbench.retrieval.support.loopback import is_loopback
from hopbench.retrieval.support.sqlite_files import damage, heal

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
                env={
                    # Prefect's own protection from other sites' pages, which is off by default; `guarded` does the rest
                    "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.api_url.removesuffix("/api"),
                    "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
                    **os.environ,
                    **(_SERVER_ENVIRONMENT if serving_port is None else settings_of_pages(home)),
                },
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # Ctrl-C is for the main process, which still wants to record the failure
            )

    def wait(self, seconds: float) -> None:
        """Block until the API answers. Raises IncompleteError with the log's end."""
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
            raise IncompleteError(f"Prefect's API server did not start: {lacking}")
        what = "did not answer in time" if code is None else f"ended with code {code} before it answered"
        raise IncompleteError(
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
    """Settings of a server with pages, which otherwise ask port 4200 for everything."""
    return {
        "PREFECT_UI_API_URL": "/api",
        "PREFECT_UI_STATIC_DIRECTORY": str(home.prefect / "pages"),
        "PREFECT_SERVER_UI_V2_ENABLED": "false",  # its new pages report to its makers: see `without_third_parties`
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])


READS = frozenset({"GET", "HEAD", "OPTIONS"})
JSON = "application/json"
CLIENTS = ("x-prefect-api-version", "x-prefect-ui")
"""Headers of Prefect's client and pages, which send them without a body too. No form of another site can."""
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"


def guarded(app: ASGIApp, origins: Iterable[str]) -> ASGIApp:
    """`app` behind the checks of this module; `origins` (https://NAME) may send requests, and their hosts name us."""
    listed = frozenset(origin.strip().lower().rstrip("/") for origin in origins) - {"", "*"}
    names = frozenset(urlsplit(origin).netloc for origin in listed)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import Headers
        from starlette.responses import JSONResponse

        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            refused = _foreign_host(headers, names) or _foreign_page(scope, headers, listed) or _no_json(scope, headers)
            if refused is not None:
                code, reason = refused
                await JSONResponse({"detail": reason}, code)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer


Refusal = tuple[int, str]


def _foreign_host(headers: Headers, names: frozenset[str]) -> Refusal | None:
    """Refuse a Host that is not this machine: a name that leads here by its owner's will only."""
    hosts = headers.getlist("host")
    if len(hosts) == 1 and (hosts[0].lower() in names or is_loopback(f"http://{hosts[0]}")):
        return None
    return 421, (
        f"Host {', '.join(hosts)!r}: this server answers to localhost and addresses of loopback only; a proxy's name "
        f"is allowed by {ORIGINS}=https://NAME"
    )


def _foreign_page(scope: Scope, headers: Headers, listed: frozenset[str]) -> Refusal | None:
    """Refuse what the page of another site sends; a link to a page of ours may be followed from anywhere."""
    origins = [origin.lower() for origin in headers.getlist("origin")]
    if origins and all(origin in listed for origin in origins):
        return None
    own = {f"{scheme}://{headers['host'].lower()}" for scheme in ("http", "https")}
    link = (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    site = headers.get("sec-fetch-site", "none")
    if own.issuperset(origins) and (site in ("none", "same-origin") or link):
        return None
    return 403, (
        f"Origin {', '.join(origins) or site!r}: another site's pages may not use this server; one is allowed by "
        f"{ORIGINS}=https://NAME"
    )


def _no_json(scope: Scope, headers: Headers) -> Refusal | None:
    """Refuse a change that is not sent as JSON, or, where it has no body, not by Prefect's client or pages."""
    if scope["type"] != "http" or scope["method"] in READS:
        return None
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if kind == JSON or (empty and not kind and any(name in headers for name in CLIENTS)):
        return None
    return 415, f"Content-Type {kind or 'none'!r}: a {scope['method']} is taken with Content-Type: {JSON} only"


def without_third_parties(app: ASGIApp) -> ASGIApp:
    """`app` with pages that may contact this server only: Prefect's newer pages report usage to its makers."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", b"connect-src 'self'")]
            await send(message)

        await app(scope, receive, sent)

    return answer


def main(descriptor: int, lock: Path, home: Path | None = None) -> None:
    """Serve the API on the listening socket `descriptor` until SIGTERM or the parent's end."""

    def end_with_parent() -> None:
        """Stop gracefully, then at once, when the parent's end of standard input closes."""
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    # Importing and migrating allocate much and free nothing: collecting there costs 1-2 of about 8 seconds.
    gc.disable()
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import PREFECT_SERVER_CORS_ALLOWED_ORIGINS

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with exclusive(lock):  # two first starts must not migrate one database together
                await super().startup(sockets=sockets)
            gc.enable()
            gc.freeze()

    def app() -> ASGIApp:
        created = create_app()
        origins = PREFECT_SERVER_CORS_ALLOWED_ORIGINS.value().split(",")
        if home is None:
            return guarded(created, origins)
        created.router.routes.insert(0, routes(Home(home)))  # Prefect's pages take every path that is left
        return guarded(without_third_parties(created), origins)

    config = uvicorn.Config(app, factory=True, log_level="error", lifespan="on", timeout_graceful_shutdown=5)
    Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(Path, sys.argv[2:]))

"""Prefect's API server as a child process that never outlives its parent.

Run by `python -m hopbench.flows.orchestration.server`.

Its arguments are a listening socket, a lock, and, for a server with pages, the home whose reports they link.

Prefect can start such a server itself, but only after `import prefect` in the parent (3 s), on a port that another
process may take meanwhile, and it survives a parent that is killed. This one is given an already bound socket, and
ends when its standard input, a pipe from the parent, closes: which happens however the parent dies.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.orchestration.guard import guarded
from hopbench.flows.orchestration.pages import routes
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.locking import exclusive

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

STOP_SECONDS = 10


def end_with_parent() -> None:
    """Stop this process gracefully, then at once, when the parent's end of standard input closes."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


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

"""Prefect's API server as a child process that never outlives its parent: `python -m flows.prefect_server`.

Prefect can start such a server itself, but only after `import prefect` in the parent (3 s), on a port that another
process may take meanwhile, and it survives a parent that is killed. This one is handed an already bound socket, and
ends when its standard input, a pipe from the parent, closes: that happens however the parent dies.
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

from retrieval.locking import exclusive

STOP_SECONDS = 10


def end_with_parent() -> None:
    """Stop this process gracefully, then at once, when the parent's end of standard input closes."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


def main(descriptor: int, lock: Path) -> None:
    """Serve the API on the listening socket `descriptor` until SIGTERM or the parent's end."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    # Importing and migrating allocate much and free nothing: collecting there costs 1-2 of about 8 seconds.
    gc.disable()
    import uvicorn
    from prefect.server.api.server import create_app

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with exclusive(lock):  # two first starts must not migrate one database together
                await super().startup(sockets=sockets)
            gc.enable()
            gc.freeze()

    config = uvicorn.Config(create_app, factory=True, log_level="error", lifespan="on", timeout_graceful_shutdown=5)
    Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

"""A line to a server that can be cut and mended: what a client sees of a server that goes away, without its restart."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class CutLine:
    """Passes connections to a port on to a server's on this machine, until it is cut: then they are refused."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.mend()

    def mend(self) -> None:
        """Take connections, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End all connections and refuse new ones."""
        assert self._listener is not None
        for end in (self._listener, *self._open):
            with contextlib.suppress(OSError):  # the other side may have ended it
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it was cut
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while received := source.recv(1 << 16):
            target.sendall(received)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def cut_line(server: int) -> Iterator[CutLine]:
    """A line to the server at that port; it is cut at the end."""
    line = CutLine(server)
    try:
        yield line
    finally:
        line.cut()

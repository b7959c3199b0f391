"""HTTP endpoints on loopback for the tests of foreign retrievers: a sound one, and every way to be a bad one."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ZIPPED = gzip.compress(bytes(1_000_000))
Rank = Callable[[Sequence[str], int], Any]


@dataclass
class Served:
    """A server that runs: its address, and what it was sent."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests' output is their own."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.served.asked.append(body)
        self.server.served.headers.append({name.lower(): value for name, value in self.headers.items()})
        with suppress(OSError):  # the client may have gone
            self.server.behave(self, body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    served: Served
    behave: Behaviour

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


Behaviour = Callable[[_Handler, dict[str, Any]], None]


@contextmanager
def serving(behave: Behaviour) -> Iterator[Served]:
    """A server on a free port of loopback until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.served = Served(f"http://127.0.0.1:{server.server_port}/retrieve")
    server.behave = behave
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.served
    finally:
        server.served.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def reply(handler: _Handler, content: bytes, code: int = 200, **headers: str) -> None:
    """One whole reply."""
    handler.send_response(code)
    for name, value in {"Content_Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def ranking(rank: Rank, **more: object) -> Behaviour:
    """A sound endpoint; `more` are fields beside `results`."""

    def behave(handler: _Handler, asked: dict[str, Any]) -> None:
        reply(handler, json.dumps({"results": rank(asked["questions"], asked["k"]), **more}).encode())

    return behave


def saying(content: bytes, code: int = 200, **headers: str) -> Behaviour:
    """The same reply to everything."""
    return lambda handler, asked: reply(handler, content, code, **headers)


def hanging(handler: _Handler, asked: dict[str, Any]) -> None:
    """Never answers."""
    handler.close_connection = True
    handler.server.served.released.wait()


def dripping(handler: _Handler, asked: dict[str, Any]) -> None:
    """Sends a header now and then, and never comes to an end."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.server.served.released.wait(0.02):
        handler.wfile.write(b"X-More: yes\r\n")


def closing(handler: _Handler, asked: dict[str, Any]) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


def endless(handler: _Handler, asked: dict[str, Any]) -> None:
    """Streams without end."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        handler.wfile.write(b" " * 1_000_000)


def zipped(handler: _Handler, asked: dict[str, Any]) -> None:
    """A small reply that is a thousand times as large when it is unpacked."""
    reply(handler, _ZIPPED, Content_Encoding="gzip")


def echoing(handler: _Handler, asked: dict[str, Any]) -> None:
    """Refuses, and repeats the key that it was sent."""
    reply(handler, f"bad key {handler.headers['Authorization']}".encode(), 401, Content_Type="text/plain")

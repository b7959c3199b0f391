"""Ports of the servers that HopBench starts on this machine."""

from __future__ import annotations

import socket

from hopbench.retrieval.support.errors import InputError

LOOPBACK = "127.0.0.1"


def listener_on(port: int) -> socket.socket:
    """A socket bound to `port` of 127.0.0.1, for the caller to close; 0 is any port that is free.

    Raises InputError where the port is taken or not allowed.
    """
    listener = socket.socket()
    if port:  # a restart takes the port again at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"--port {port} cannot be used on {LOOPBACK} ({error.strerror}): end what listens there, or name another"
        ) from error
    return listener

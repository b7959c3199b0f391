"""Processes by a name that no later process can take: host, id and start time."""

from __future__ import annotations

import os
import socket
from pathlib import Path

PREFIX = "process"


def process_tag(pid: int | None = None) -> str:
    """`process:HOST:PID:START` of a process, this one if none is named; START is its start in ticks since boot."""
    pid = os.getpid() if pid is None else pid
    return f"{PREFIX}:{socket.gethostname()}:{pid}:{_start(pid) or ''}"


def is_gone(tag: str) -> bool:
    """Whether the tagged process ran on this host and has ended; of other hosts nothing is known."""
    prefix, _, rest = tag.partition(":")
    host, pid, start = [*rest.rsplit(":", 2), "", ""][:3]
    if prefix != PREFIX or host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's: it lives, and may be another one by now
        pass
    now = _start(int(pid))
    return bool(start) and now is not None and now != start


def _start(pid: int) -> str | None:
    """When the process started, from /proc; None where there is no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None

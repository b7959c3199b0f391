"""Flow runs of processes that were killed: Prefect shows them as running until the next start marks them.

Each flow run is tagged with the process that runs it, under a name that no later process can have.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import psutil

PREFIX = "process"
CLOCK_SECONDS = 60  # by which a start time may move when the system clock is set
MAX_RUNS = 200  # read at a time; Prefect's limit


def process_tag(pid: int | None = None) -> str:
    """`process:HOST:PID:START` of a process, by default this one; START is when it started, in seconds (Unix time)."""
    pid = os.getpid() if pid is None else pid
    return f"{PREFIX}:{socket.gethostname()}:{pid}:{_started(pid) or ''}"


def is_gone(tag: str) -> bool:
    """Whether the tagged process ran on this host and has ended; False for processes of other hosts."""
    prefix, _, rest = tag.partition(":")
    host, pid, start = [*rest.rsplit(":", 2), "", ""][:3]
    if prefix != PREFIX or host != socket.gethostname() or not pid.isdigit():
        return False
    if not psutil.pid_exists(int(pid)):
        return True
    now = _started(int(pid))
    return bool(start) and now is not None and abs(float(now) - float(start)) > CLOCK_SECONDS


def _started(pid: int) -> str | None:
    """When a process started; None where the system does not report it."""
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return None


def mark_crashed() -> list[str]:
    """Mark HopBench's running flow runs whose process ran on this host and is gone; returns the runs' names."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        FlowRunFilterTags,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.states import Crashed

    under_way = FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
    wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=["hopbench"]), state=FlowRunFilterState(type=under_way))
    marked = []
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=wanted, limit=MAX_RUNS):
            owners = [tag for tag in run.tags if tag.startswith(f"{PREFIX}:")]
            if owners and all(map(is_gone, owners)):
                pid = owners[0].split(":")[-2]
                reason = f"process {pid} was killed, or the machine stopped; found at a later start"
                client.set_flow_run_state(run.id, Crashed(message=reason), force=True)
                marked.append(run.name)
    return marked

"""MLflow's writer's share of the processors: little while the main process times labels, then a whole one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

SESSION = "/proc/{process}/autogroup"
"""Linux may share processors among sessions before it does within them; the writer has a session of its own."""


def lower_priority(niceness: int) -> None:
    """Let other processes go first, as long as the main process does not wait for this one.

    Where the system would not let it go back, this process keeps its share: on a busy machine the main process would
    wait for minutes.
    """
    with suppress(AttributeError):  # Windows has none
        if may_go_back():
            os.nice(niceness)
    with suppress(OSError):
        Path(SESSION.format(process="self")).write_text(str(niceness), encoding="ascii")


def restore_priority(process: int) -> None:
    """Give a process that called `lower_priority` the share of this one, all of its threads."""
    if not hasattr(os, "setpriority"):  # Windows has none
        return
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):  # it may have ended
        Path(SESSION.format(process=process)).write_text(str(own), encoding="ascii")
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), own)


def may_go_back() -> bool:
    """Whether the system lets this process take back a lower priority (root, or RLIMIT_NICE); tried on one thread."""
    found: list[bool] = []

    def attempt() -> None:
        with suppress(OSError):
            os.nice(1)
            os.nice(-1)
            found.append(True)

    if sys.platform == "linux":  # elsewhere all threads of a process have one priority
        trial = Thread(target=attempt)
        trial.start()
        trial.join()
    return bool(found)

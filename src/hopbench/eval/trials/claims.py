"""Claims of processes on trials, so that two processes on one sweep never do the same trial.

A claim lasts as long as its owner holds the lock on its file, which the operating system releases however the process
ends. So the claim of a killed process can be taken over at once, and that of a suspended process never is.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hopbench.retrieval.support.locking import open_lock


@contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that is the only writer from its first statement on."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class Claims:
    """The claims of one process on the trials of a ledger; `folder` holds a locked file for each living owner."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = open_lock(folder / self.owner)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def take(self, trial_id: str) -> bool:
        """Claim the trial; False if it is finished or claimed by another living process."""
        with immediate(self._connection):
            if self._connection.execute("SELECT 1 FROM trials WHERE trial_id = ?", (trial_id,)).fetchone():
                return False
            row = self._connection.execute("SELECT owner FROM claims WHERE trial_id = ?", (trial_id,)).fetchone()
            if row is not None and row[0] != self.owner and alive(self._folder / row[0]):
                return False
            self._connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (trial_id, self.owner))
            return True

    def close(self) -> None:
        """Release all claims."""
        with immediate(self._connection):
            self._connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        (self._folder / self.owner).unlink(missing_ok=True)
        self._lock.close()


def alive(owner: Path) -> bool:
    """Whether the process that owns this file is alive; the file of a dead one is removed."""
    try:
        with owner.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    owner.unlink(missing_ok=True)
    return False

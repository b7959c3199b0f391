"""Where the tests' temporary files are: in memory, since syncing thousands of small files to a disk takes minutes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30  # bytes: the largest things in them are the databases of a few Neo4j servers


def keep_temporary_files_in_memory() -> None:
    """Make /dev/shm the folder of temporary files, of this process and of those that it starts.

    A TMPDIR that is set stays, and so does the usual folder where memory is short, as in a container whose /dev/shm has
    64 MB.
    """
    if "TMPDIR" not in os.environ and has_room(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # to be looked up again


def has_room(folder: Path) -> bool:
    """Whether a file system in memory may be filled with `ROOM` bytes, and the machine has twice as many to spare."""
    if not os.access(folder, os.W_OK | os.X_OK) or shutil.disk_usage(folder).free < ROOM:
        return False
    available = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"), re.MULTILINE)
    return available is not None and int(available[1]) * 1024 > 2 * ROOM

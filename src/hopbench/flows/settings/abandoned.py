"""Temporary folders of commands that were killed, which could not remove them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DAYS = 7
PATTERNS = (
    "tmp/tables-*",
    "tmp/sweep-*-*",
    "tmp/pool/*",
    "tmp/compared/*",
    "cache/search/*/.*-*",
    "cache/passages/.*-*",
)
"""Below a home. What lies there belongs to one command, which touches it all the time."""


def remove_abandoned(root: Path) -> None:
    """Remove what nobody has touched for `DAYS` days.

    Its age decides, not whether a process of that number lives: machines of a pool share a home.
    """
    limit = time.time() - DAYS * 86400
    for pattern in PATTERNS:
        for folder in root.glob(pattern):
            with suppress(FileNotFoundError):
                if folder.is_dir() and _newest(folder) < limit:
                    shutil.rmtree(folder, ignore_errors=True)


def _newest(folder: Path) -> float:
    def times() -> Iterator[float]:
        yield folder.stat().st_mtime
        for path in folder.rglob("*"):
            yield path.stat().st_mtime

    return max(times())

"""One nightly at a time in a home. The lock file names its holder; a process that dies releases the lock."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.support.locking import open_lock


@contextmanager
def only_nightly(path: Path, dataset: str) -> Iterator[str | None]:
    """Hold `path` while the nightly runs; yields a note about the last holder if it was killed, else None.

    Raises IncompleteError, naming the holder, while another nightly runs.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    open_lock(path, "a").close()  # replaces an empty folder, refuses a full one
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise IncompleteError(
            f"another nightly is running in {path.parent.parent}: {_words(_read(path))}. Wait for its end or stop "
            "it, then run this command again; nightlies that must overlap need homes of their own (HOPBENCH_HOME)"
        ) from None
    try:
        left = _read(path)
        _write(path, {"pid": os.getpid(), "dataset": dataset, "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"})
        yield f"the last nightly did not finish: {_words(left)}" if left else None
    finally:
        _write(path, {})
        lock.release()


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8") or "{}")
    except ValueError:  # its holder was killed while writing
        return {"pid": "?", "dataset": "?", "started": "?"}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content) if content else "", encoding="utf-8")


def _words(holder: dict[str, Any]) -> str:
    if not holder:
        return "it is just starting"
    return f"process {holder.get('pid')}, {holder.get('dataset')}, since {holder.get('started')}"

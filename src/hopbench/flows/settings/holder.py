"""Locks whose file names their holder; the system releases them however that ends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.support.locking import open_lock


@contextmanager
def held(path: Path, dataset: str, refusal: Callable[[str], HopBenchError]) -> Iterator[str | None]:
    """Hold the lock `path`; yields the last holder in words if it was killed, else None.

    Raises the `refusal` of the present holder in words, while another process or thread has the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    open_lock(path, "a").close()  # replaces an empty folder, refuses a full one
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise refusal(_words(_read(path))) from None
    try:
        left = _read(path)
        own = {"pid": os.getpid(), "dataset": dataset, "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
        path.write_text(json.dumps(own), encoding="utf-8")
        yield _words(left) if left else None
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8") or "{}")
    except FileNotFoundError:  # its holder ends just now
        return {}
    except ValueError:  # its holder was killed while writing
        return {"pid": "?", "dataset": "?", "started": "?"}
    return content if isinstance(content, dict) else {}


def _words(holder: dict[str, Any]) -> str:
    if not holder:
        return "it is just starting or ending"
    return f"process {holder.get('pid')}, {holder.get('dataset')}, since {holder.get('started')}"

"""Cached folders: made once and read by every process, whole or not at all, and made again when damaged."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from hopbench.retrieval.support.notice import notice


def file_sum(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal. Raises OSError where it cannot be read."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


SIZES = "sizes.json"  # written last: without it, or where another file has another size, the folder is made again
SUMS = "sums"  # SHA-256 of each file, beside its size: reading all is left to `damaged`, unless `content` asks for it
T = TypeVar("T")


def kept(
    place: Path,
    of: str,
    write: Callable[[Path], None],
    read: Callable[[Path], T],
    *,
    content: bool = False,
) -> T:
    """What `read` makes of a folder that `write` has filled: now, where it is missing, damaged or of something else.

    `of` says of what, and of which version of the code, the files are. With `content` their checksums are compared too.
    """
    if _intact(place, of, content=content):
        with suppress(OSError, ValueError, TypeError, KeyError):  # damaged, whatever its size
            return read(place)
    if place.exists():
        if _written(place).get("version", of) == of:
            notice(f"{place} does not read as it was written: it is made again")
        shutil.rmtree(place, ignore_errors=True)
    if not _intact(place, of):
        _make(place, of, write)
    return read(place)


def damaged(folder: Path) -> list[Path]:
    """The folders in `folder` of which a file is not as it was written; all files are read for it."""
    parts = [part for part in sorted(folder.iterdir()) if part.is_dir() and not part.name.startswith(".")]
    return [part for part in parts if not _as_written(part, content=True)]


def _make(place: Path, of: str, write: Callable[[Path], None]) -> None:
    """Write a folder whole or not at all; where another process was faster, its folder stays."""
    made = place.with_name(f".{place.name}-{uuid4().hex}")  # readable for whoever shares the home, unlike `mkdtemp`'s
    made.mkdir(parents=True)
    try:
        write(made)
        files = sorted(made.iterdir())
        sizes = {file.name: file.stat().st_size for file in files}
        sums = {file.name: file_sum(file) for file in files}
        (made / SIZES).write_text(json.dumps({"version": of, "sizes": sizes, SUMS: sums}), encoding="utf-8")
        if not _intact(place, of):
            shutil.rmtree(place, ignore_errors=True)
        try:
            os.rename(made, place)
        except OSError:
            if not _intact(place, of):
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _written(place: Path) -> dict[str, Any]:
    """What the folder says of itself, {} where that does not read."""
    try:
        written = json.loads((place / SIZES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def _intact(place: Path, of: str, *, content: bool = False) -> bool:
    return bool(_written(place).get("version") == of) and _as_written(place, content=content)


def _as_written(place: Path, *, content: bool) -> bool:
    """Whether all files are as long as they were written, and with `content` the same."""
    written = _written(place)
    try:
        fits = all((place / name).stat().st_size == size for name, size in written["sizes"].items())
        sums = written[SUMS] if content else {}
        return fits and all(file_sum(place / name) == known for name, known in sums.items())
    except (OSError, TypeError, KeyError, AttributeError):
        return False

"""Atomic writing of files, and Parquet tables with checksums."""

from __future__ import annotations

import errno
import io
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopbench.retrieval.support.errors import HopBenchError, InputError, exhausted

if TYPE_CHECKING:
    import pandas as pd


def write_table(path: Path, table: pd.DataFrame, compression: Literal["snappy", "zstd"] = "snappy") -> None:
    """Write a table as Parquet, atomically, with a checksum of each page."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False, compression=compression, write_page_checksum=True)
    write_atomically(path, buffer.getvalue())


def read_table(path: Path) -> pd.DataFrame:
    """Read a Parquet table. Raises OSError or ValueError where it is damaged, by its checksums too."""
    import pandas as pd

    return pd.read_parquet(path, page_checksum_verification=True)


def refuse_unwritable(path: Path) -> None:
    """Raise InputError where `write_atomically` could not write `path`; an existing file is not changed."""
    try:
        target = _target(path)
        probe = target.with_name(f".{os.getpid()}.probe")
        target.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader never sees half a file. A link stays one: its target is written.

    Raises InputError when the folder cannot be written, and for a device or a pipe, IncompleteError when its disk is
    full.
    """
    temporary: Path | None = None
    try:
        target = _target(path)
        temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.tmp")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _target(path: Path) -> Path:
    """Where a file is written; InputError for what stands there and is none. A device would become a plain file."""
    try:
        target = path.resolve()
    except RuntimeError as error:  # what Python 3.11 makes of ELOOP
        raise InputError(f"cannot write {path}: its links lead in a circle: name the place itself") from error
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a folder: name a file")
    if target.exists() and not target.is_file():
        raise InputError(f"cannot write {path}: it is a device or a pipe: name a file")
    return target


_REMEDIES = {
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EEXIST: "a file stands where a folder belongs: choose another folder",
    errno.ENOTDIR: "a file stands where a folder belongs: choose another folder",
}


def _unwritable(path: Path, error: OSError) -> HopBenchError:
    if (lacking := exhausted(error, path)) is not None:
        return lacking
    remedy = _REMEDIES.get(error.errno or 0, "choose a folder you may write to")
    return InputError(f"cannot write {path}: {error.strerror}: {remedy}")

"""Atomic writing of files, and Parquet tables with checksums."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopbench.retrieval.support.errors import HopBenchError, InputError
from hopbench.retrieval.support.resources import exhausted

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
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder: name a file")
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader never sees half a file.

    Raises InputError when the folder cannot be written, IncompleteError when its disk is full.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> HopBenchError:
    if (lacking := exhausted(error, path)) is not None:
        return lacking
    return InputError(f"cannot write {path}: {error.strerror}: choose a folder you may write to")

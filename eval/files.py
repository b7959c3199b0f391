"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hopbench.retrieval.errors import HopBenchError, InputError
from hopbench.retrieval.resources import exhausted


def refuse_unwritable(path: Path) -> None:
    """Raise InputError where `write_atomically` could not write `path`; a file that is there stays as it is."""
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

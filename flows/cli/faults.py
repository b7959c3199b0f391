"""Turns errors of the operating system that no other part has handled into one plain message."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError
from hopbench.retrieval.support.resources import exhausted

# Errors about a path, not about the program.
_OF_PATHS = {
    errno.EACCES: "allow it, or name another",
    errno.EPERM: "allow it, or name another",
    errno.EROFS: "name a folder that can be written",
    errno.EISDIR: "a folder stands where a file belongs: move it away, or name another",
    errno.ENOTDIR: "a file stands where a folder belongs: move it away, or name another",
    errno.EEXIST: "move it away, or name another",
    errno.ENOTEMPTY: "move it away, or name another",
    errno.ELOOP: "its links lead in a circle: name the place itself",
    errno.ENAMETOOLONG: "the system takes names of at most 255 bytes: choose a shorter one",
    errno.ENXIO: "nobody reads that pipe: name a file",
}


def plain(error: Exception) -> HopBenchError | None:
    """The error as a HopBenchError; None where it is a defect of the program."""
    if isinstance(error, HopBenchError):
        return error
    if (lacking := exhausted(error)) is not None:
        return lacking
    if isinstance(error, OSError) and error.filename is not None and error.errno in _OF_PATHS:
        named = os.fsdecode(error.filename) if isinstance(error.filename, bytes | str) else error.filename
        return InputError(f"cannot use {named}: {error.strerror}: {_OF_PATHS[error.errno]}")
    if isinstance(error, OSError) and error.errno == errno.EIO:
        return IncompleteError(f"the disk cannot be read or written ({error}): check it, then run the same command")
    return None


def refuse_undecodable_arguments(words: list[str]) -> None:
    """Raise InputError for arguments or a working folder that are no UTF-8: no file of results could name them."""
    try:
        here = str(Path.cwd())
    except OSError as error:
        raise InputError("the folder that this was started in is gone: change to another one") from error
    for what, text in (*(("argument", word) for word in words), ("working folder", here)):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what} {text.encode(errors='backslashreplace').decode()}: its name is no UTF-8, which no file of "
                "results could hold: rename it, or use a link with another name"
            ) from error
        if "\0" in text:
            raise InputError(f"{what} {text!r}: no name of a file holds NUL: remove it")


def escape_unprintable() -> None:
    """Print characters that the console cannot encode as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

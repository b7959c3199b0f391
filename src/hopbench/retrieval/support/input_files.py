"""Reads files that a user names, up to a size limit; pipes, devices and folders are refused at once."""

from __future__ import annotations

import stat
from pathlib import Path

from hopbench.retrieval.support.errors import InputError


def regular(path: Path, named: str = "") -> Path:
    """The path, if an ordinary file is there. Raises InputError for a folder, a pipe, a device, or nothing."""
    named = named or str(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"{named}: no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unreadable(named, error) from error
    if stat.S_ISREG(mode):
        return path
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    kind = next((words for is_kind, words in kinds.items() if is_kind(mode)), "a device")
    raise InputError(f"{named}: is {kind}, not a file: write what it should give into a file, and name that")


def unreadable(named: str, error: Exception) -> InputError:
    """The error for a file that the system will not open or read."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{named}: cannot be read ({reason}): check what it is and who may read it")


def read_bytes(path: Path, limit: int, named: str = "") -> bytes:
    """The content of an ordinary file of at most `limit` bytes. Raises InputError, naming the limit."""
    named = named or str(path)
    try:
        with regular(path, named).open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise unreadable(named, error) from error
    if len(content) > limit:
        raise InputError(f"{named}: over {limit:,} bytes, which is the limit for such a file: shorten it")
    return content

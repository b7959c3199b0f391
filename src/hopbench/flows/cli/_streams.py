"""Standard output and error of the command: for its own output alone, and errors of the system as plain messages."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, exhausted

PACKAGE = "hopbench"
PRINTERS = frozenset({"typer", "click", "rich"}) | sys.stdlib_module_names
"""Packages that print for whoever calls them, such as `csv`."""


class Reserved:
    """A text stream that takes what HopBench writes, and hands on to standard error what any other code writes.

    The code that writes decides, not the time: plug-ins may print in threads, while they are imported, or at the end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text. See `io.TextIOBase.write`."""
        return (self._stream if _is_ours(sys._getframe(1)) else sys.stderr).write(text)

    def writelines(self, lines: Any) -> None:
        """Write texts. See `io.IOBase.writelines`."""
        (self._stream if _is_ours(sys._getframe(1)) else sys.stderr).writelines(lines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _is_ours(frame: FrameType | None) -> bool:
    """Whether code of HopBench writes, itself or by one of `PRINTERS`."""
    while frame is not None:
        spec = frame.f_globals.get("__spec__")  # a module that is run as a program is called __main__
        package = str(getattr(spec, "name", None) or frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in PRINTERS:
            return package == PACKAGE
        frame = frame.f_back
    return False


STDOUT, STDERR = 1, 2
NO_READER = 128 + 13  # as a shell reports a command that SIGPIPE ended

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


class Output(io.FileIO):
    """Standard output or error of this process, whose reader may leave (`| head -1`) and whose disk may be full.

    Without a reader the command ends as others do, by the exit code of SIGPIPE; messages nobody reads stop no work.
    """

    def write(self, content: Any) -> int:
        """See `io.FileIO.write`. Raises SystemExit without a reader, IncompleteError where it cannot be written."""
        try:
            return super().write(content)
        except OSError as error:
            with open(os.devnull, "wb") as nowhere:  # for what is still buffered
                os.dup2(nowhere.fileno(), self.fileno())
            if self.fileno() == STDERR:
                return len(content)
            if isinstance(error, BrokenPipeError):
                raise SystemExit(NO_READER) from None
            raise IncompleteError(
                f"standard output cannot be written ({error.strerror}): send it elsewhere; files are not affected"
            ) from error


def prepare_output() -> None:
    """Write to both streams by `Output`, and characters that the console cannot encode as escapes."""
    for name, descriptor in (("stdout", STDOUT), ("stderr", STDERR)):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):  # else somebody collects it
            raw = io.BufferedWriter(Output(descriptor, "w", closefd=False))
            lines = stream.line_buffering
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=lines))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Write what is buffered for standard output, if there is one."""
    if sys.stdout is not None:
        sys.stdout.flush()

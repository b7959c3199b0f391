"""Standard output for the command's own output alone: what plug-ins print goes to standard error."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, TextIO

OURS = "hopbench"
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
            return package == OURS
        frame = frame.f_back
    return False

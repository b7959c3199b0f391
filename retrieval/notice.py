"""One line to whoever runs a command, about something that was put right without them."""

from __future__ import annotations

import sys


def notice(message: str) -> None:
    """Say `message` on standard error, in one line; characters that the terminal cannot show are written as escapes."""
    text = " ".join(message.split())
    sys.stderr.write(f"hopbench: {text.encode(errors='backslashreplace').decode()}\n")
    sys.stderr.flush()

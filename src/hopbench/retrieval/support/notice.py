"""Notices on the console: one line about a problem that was repaired without the user."""

from __future__ import annotations

import sys

_CODES = (*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in _CODES if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """`text` with control and text-direction characters as escapes, so that it cannot steer a terminal."""
    return text.translate(_ESCAPES)


def notice(message: str) -> None:
    """Write `message` to standard error, in one line, with characters that it cannot encode as escapes."""
    text = " ".join(message.split())
    sys.stderr.write(f"hopbench: {harmless(text).encode(errors='backslashreplace').decode()}\n")
    sys.stderr.flush()

"""One line to whoever runs a command, about something that was put right without them."""

from __future__ import annotations

import sys

_CODES = (*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in _CODES if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """`text` without what would steer a terminal or turn its line around: such characters stand as escapes."""
    return text.translate(_ESCAPES)


def notice(message: str) -> None:
    """Say `message` on standard error, in one line; characters that the terminal cannot show are written as escapes."""
    text = " ".join(message.split())
    sys.stderr.write(f"hopbench: {harmless(text).encode(errors='backslashreplace').decode()}\n")
    sys.stderr.flush()

"""What tells whether a file is still as it was written."""

from __future__ import annotations

import hashlib
from pathlib import Path


def file_sum(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal. Raises OSError where it cannot be read."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

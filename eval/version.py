"""Which code computed a result."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


@cache
def code_version() -> str:
    """The release and a digest of the source that computes rankings and scores (not reports, flows or docs)."""
    digest = hashlib.sha256()
    sources = [
        *(_ROOT / "retrieval").rglob("*.py"),
        *(_ROOT / "eval" / "metrics").rglob("*.py"),
        _ROOT / "eval" / "trial.py",
    ]
    for file in sorted(sources):
        digest.update(file.relative_to(_ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{version('hopbench')}+{digest.hexdigest()[:12]}"

"""Which code computed a result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def _sources() -> list[Path]:
    """The source that computes rankings and scores (not reports, flows or docs)."""
    return sorted(
        [*(_ROOT / "retrieval").rglob("*.py"), *(_ROOT / "eval" / "metrics").rglob("*.py"), _ROOT / "eval" / "trial.py"]
    )


@cache
def code_version() -> str:
    """The release and a digest of the source that computes rankings and scores."""
    digest = hashlib.sha256()
    for file in _sources():
        digest.update(file.relative_to(_ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{version('hopbench')}+{digest.hexdigest()[:12]}"


@cache
def source_digests() -> Mapping[str, str]:
    """Each of those files with a digest of its content, so that two versions can be told apart file by file."""
    return {
        file.relative_to(_ROOT).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in _sources()
    }

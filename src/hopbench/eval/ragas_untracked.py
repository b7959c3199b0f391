"""RAGAS without its analytics: HopBench sends nothing home and writes nothing outside its own home."""

from __future__ import annotations

import os


def import_untracked() -> None:
    """Import RAGAS, which takes 3-15 s, so that it neither reports its use nor keeps a user id. Call it before any use.

    RAGAS makes the id even where it must not report: it would write `~/.local/share/ragas/uuid.json`.
    """
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    from ragas import _analytics

    _analytics.user_data_dir = _no_folder


def _no_folder(appname: str) -> str:
    """RAGAS takes a random id for the process where it has no folder."""
    raise OSError(f"no folder for {appname}'s user id")

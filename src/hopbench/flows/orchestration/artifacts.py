"""Artifacts of a flow run: what a reader of Prefect's pages wants to know when it is over."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_log = logging.getLogger(__name__)


def artifact_key(*parts: str) -> str:
    """A key as Prefect takes it: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(["hopbench", *parts]).lower()).strip("-")


def leave(markdown: str, key: str, description: str) -> None:
    """Leave a page of Markdown with the flow run under way; without one, do nothing.

    The run's own files are complete by then, so a server that refuses or is gone costs only the artifact.
    """
    from prefect.context import FlowRunContext

    if FlowRunContext.get() is None:
        return
    from prefect.artifacts import create_markdown_artifact

    try:
        create_markdown_artifact(markdown, key, description)
    except Exception as error:
        _log.warning("no artifact %s: %s: %s", key, type(error).__name__, error)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same columns as a table of Markdown; numbers with three digits."""
    heads = list(rows[0]) if rows else []
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(_cell(row[head]) for head in heads) + " |" for row in rows)])


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value).replace("|", "\\|")

"""How commands write to standard output: plain text that reads at 80 to 140 columns, in a pipe as on a terminal."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.segment import Segment

from hopbench.flows.cli.printing.grid import Grid
from hopbench.retrieval.support.notice import harmless

WIDTH = 120


class PlainConsole(Console):
    """Shows control characters of corpora and names as escapes: only rich itself steers the terminal."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        safe = [one if one.control else Segment(harmless(one.text), one.style) for one in buffer]
        return super()._render_buffer(safe)


def console() -> Console:
    """Standard output; in a pipe or a file 120 columns wide. Nothing is coloured but what is marked so."""
    found = PlainConsole(highlight=False)
    return found if found.is_terminal else PlainConsole(highlight=False, width=WIDTH)


def table(
    *columns: str, right: Sequence[str] = (), drop: Sequence[str] = (), fold: Sequence[str] = (), keys: int = 1
) -> Grid:
    """A borderless table that fits its width; see `Grid`."""
    return Grid(columns, right, drop, fold, keys)


def add_row(rows: Grid, *cells: str) -> None:
    """A row of plain text: brackets in a cell are no markup."""
    rows.add_row(*cells)


def print_json(value: Any) -> None:
    """A value for machines: UTF-8, two spaces, keys as they are."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows for a spreadsheet, the first one's names as the heading."""
    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def number(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """A number with fixed decimals, a dash where there is none."""
    return "–" if value is None else f"{value:{'+' if sign else ''}.{digits}f}"

"""How commands write to standard output: plain text that reads at 80 to 140 columns, in a pipe as on a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer
from rich.console import Console

from flows.cli.grid import Grid

WIDTH = 120


def console() -> Console:
    """Standard output; in a pipe or a file 120 columns wide. Nothing is coloured but what is marked so."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDTH)


def table(*columns: str, right: Sequence[str] = (), drop: Sequence[str] = (), fold: Sequence[str] = ()) -> Grid:
    """A borderless table that fits its width; see `Grid`."""
    return Grid(columns, right, drop, fold)


def add_row(rows: Grid, *cells: str) -> None:
    """A row of plain text: brackets in a cell are no markup."""
    rows.add_row(*cells)


def print_json(value: Any) -> None:
    """A value for machines: UTF-8, two spaces, keys as they are."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def number(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """A number with fixed decimals, a dash where there is none."""
    return "–" if value is None else f"{value:{'+' if sign else ''}.{digits}f}"

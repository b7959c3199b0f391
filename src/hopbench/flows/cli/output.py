"""How commands write to standard output: plain text that reads at 80 to 140 columns, in a pipe as on a terminal."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hopbench.retrieval.support.notice import harmless

if TYPE_CHECKING:
    from hopbench.flows.run.estimate import Estimate, Priced

GAP = 2
COMFORTABLE = 32
"""Characters of a text beyond which it is folded before a column is dropped."""

MIN_FOLDED_WIDTH = 14
"""Characters that a folded column keeps at least, if it ever had so many."""


class Grid:
    """Borderless, a bold heading over each column; numbers stand in columns named in `right`.

    Where the width is short, columns named in `drop` go, the first named first; if that is not enough, texts in columns
    of `fold` (default: all that are not in `right`) take more lines; what still does not fit stands below, behind the
    first `keys` columns again, which identify the row. No heading is ever cut.
    """

    def __init__(
        self,
        columns: Sequence[str],
        right: Collection[str] = (),
        drop: Sequence[str] = (),
        fold: Collection[str] = (),
        keys: int = 1,
    ) -> None:
        self.headings = list(columns)
        self._right, self._drop, self._keys = right, drop, keys
        self._fold = fold or [name for name in columns if name not in right]
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: str | Text) -> None:
        """A row; brackets in a cell are no markup."""
        self._rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The parts that fit the console's width, one below another."""
        for place, part in enumerate(self.parts(options.max_width)):
            if place:
                yield Text()
            yield self._table(part)

    def parts(self, width: int) -> Iterator[dict[int, int]]:
        """Column number → width, for each of the tables that it takes; mostly one."""
        chosen = self._kept(width)
        while chosen:
            part = self._first_part(chosen, width)
            yield self._widths(part, width)
            rest = [column for column in chosen if column not in part]
            chosen = [*part[: self._keys], *rest] if rest else []

    def _kept(self, width: int) -> list[int]:
        chosen = list(range(len(self.headings)))
        for name in self._drop:
            if self._total(chosen, self._comfortable) <= width:
                break
            chosen = [column for column in chosen if self.headings[column] != name]
        return chosen

    def _first_part(self, chosen: list[int], width: int) -> list[int]:
        part = chosen[: self._keys]
        for column in chosen[self._keys :]:
            if len(part) > self._keys and self._total([*part, column], self._needed) > width:
                break
            part.append(column)
        return part

    def _widths(self, part: Sequence[int], width: int) -> dict[int, int]:
        """Natural widths, the widest of the folded columns narrowed while it is too much."""
        result = {column: self._natural(column) for column in part}
        over = self._total(part, result.__getitem__) - width
        while over > 0:
            slack = {column: result[column] - self._least(column) for column in part}
            widest = max(part, key=lambda column: (slack[column] > 0, result[column]))
            if slack[widest] <= 0:
                break
            result[widest] -= 1
            over -= 1
        return result

    @staticmethod
    def _total(columns: Sequence[int], width_of: Callable[[int], int]) -> int:
        return sum(map(width_of, columns)) + GAP * max(0, len(columns) - 1)

    def _natural(self, column: int) -> int:
        cells = [self.headings[column], *(line for row in self._rows for line in row[column].plain.splitlines())]
        return max(map(cell_len, cells), default=0)

    def _least(self, column: int) -> int:
        natural = self._natural(column)
        if self.headings[column] not in self._fold:
            return natural
        word = max(map(cell_len, self.headings[column].split()), default=0)
        return min(natural, max(word, MIN_FOLDED_WIDTH))

    def _needed(self, column: int) -> int:
        """What a column needs beside others: a label is folded only where columns cannot stand below instead."""
        return self._least(column) if column >= self._keys or self._drop else self._comfortable(column)

    def _comfortable(self, column: int) -> int:
        natural = self._natural(column)
        return min(natural, COMFORTABLE) if self.headings[column] in self._fold else natural

    def _table(self, widths: dict[int, int]) -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold")
        for column, width in widths.items():
            name = self.headings[column]
            justify = "right" if name in self._right else "left"
            made.add_column(Text(name), justify=justify, width=width, overflow="fold")  # type: ignore[arg-type]
        for row in self._rows:
            made.add_row(*(row[column] for column in widths))
        return made


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


NUMBERS = ("calls", "tokens in", "tokens out", "USD", "minutes")


ASSUMED = "An estimate from a few questions; replies cached by earlier runs cost nothing."


def print_estimate(estimate: Estimate, assumed: str = ASSUMED) -> None:
    """A line per label and purpose, the sum, and the figures' basis."""
    screen = console()
    rows = table("strategy", "purpose", *NUMBERS, right=NUMBERS)
    for line in estimate.lines:
        add_row(rows, line.line.label, line.line.purpose, *_cells([line], line.usd))
    add_row(rows, "all", "", *_cells(estimate.lines, estimate.usd))
    screen.print(rows)
    for role, speed in estimate.speeds.items():
        basis = f"as {speed.calls} earlier calls took" if speed.calls else "assumed, for want of earlier calls"
        name = estimate.endpoints[role].name
        screen.print(f"{role} {name}: {speed.seconds:.3g} s a written token, {basis}", markup=False, soft_wrap=True)
    for warning in estimate.warnings:
        screen.print(f"warning: {warning}", markup=False, style="yellow", soft_wrap=True)
    screen.print(f"{assumed} No model was called.", soft_wrap=True)


def _cells(lines: Sequence[Priced], usd: float | None) -> list[str]:
    sums = [sum(getattr(line.line, name) for line in lines) for name in ("calls", "tokens_in", "tokens_out")]
    price = "not known" if usd is None else f"{usd:.4f}"
    return [*(f"{value:,.0f}" for value in sums), price, f"{sum(one.seconds for one in lines) / 60:.1f}"]

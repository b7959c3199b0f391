"""How commands write to standard output: plain text that reads at 80 to 140 columns, in a pipe as on a terminal."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import wraps
from typing import TYPE_CHECKING, Any, TextIO

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
        *columns: str,
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
        for number, widths in enumerate(self.parts(options.max_width)):
            if number:
                yield Text()
            made = Table(box=None, pad_edge=False, header_style="bold")
            for column, width in widths.items():
                name = self.headings[column]
                justify = "right" if name in self._right else "left"
                made.add_column(Text(name), justify=justify, width=width, overflow="fold")  # type: ignore[arg-type]
            for row in self._rows:
                made.add_row(*(row[column] for column in widths))
            yield made

    def parts(self, width: int) -> Iterator[dict[int, int]]:
        """Column number → width, for each of the tables that it takes; mostly one."""
        natural, comfortable, smallest = [], [], []
        for column, name in enumerate(self.headings):
            cells = [name, *(line for row in self._rows for line in row[column].plain.splitlines())]
            natural.append(max(map(cell_len, cells), default=0))
            folds = name in self._fold
            comfortable.append(min(natural[-1], COMFORTABLE) if folds else natural[-1])
            word = max(map(cell_len, name.split()), default=0)
            smallest.append(min(natural[-1], max(word, MIN_FOLDED_WIDTH)) if folds else natural[-1])
        chosen = list(range(len(self.headings)))
        for name in self._drop:
            if _total([comfortable[column] for column in chosen]) <= width:
                break
            chosen = [column for column in chosen if self.headings[column] != name]
        # A label is folded only where columns cannot stand below instead.
        needed = smallest if self._drop else [*comfortable[: self._keys], *smallest[self._keys :]]
        while chosen:
            part = chosen[: self._keys]
            for column in chosen[self._keys :]:
                if len(part) > self._keys and _total([needed[one] for one in (*part, column)]) > width:
                    break
                part.append(column)
            widths = {column: natural[column] for column in part}
            for _ in range(_total(widths.values()) - width):  # the widest of the folded columns gets narrower
                widest = max(part, key=lambda column: (widths[column] > smallest[column], widths[column]))
                if widths[widest] <= smallest[widest]:
                    break
                widths[widest] -= 1
            yield widths
            rest = [column for column in chosen if column not in part]
            chosen = [*part[: self._keys], *rest] if rest else []


def _total(widths: Collection[int]) -> int:
    return sum(widths) + GAP * max(0, len(widths) - 1)


WIDTH = 120


class PlainConsole(Console):
    """Shows control characters of corpora and names as escapes: only rich itself steers the terminal."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        safe = [one if one.control else Segment(harmless(one.text), one.style) for one in buffer]
        return super()._render_buffer(safe)


_reserved: list[TextIO] = []
"""Standard output, while a command runs."""


def reserved(command: Callable[..., None]) -> Callable[..., None]:
    """The command with standard output for what this module prints; what plug-ins print goes to standard error."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        _reserved.append(sys.stdout)
        try:
            with redirect_stdout(sys.stderr):
                command(*arguments, **options)
        finally:
            _reserved.pop()

    return run


def stdout() -> TextIO:
    """Standard output, for a command's own text alone."""
    return _reserved[-1] if _reserved else sys.stdout


def echo(text: object = "", err: bool = False) -> None:
    """Print a line."""
    typer.echo(text, file=sys.stderr if err else stdout())


def console(width: int | None = WIDTH) -> Console:
    """Standard output; in a pipe or a file `width` columns wide. Nothing is coloured but what is marked so."""
    found = PlainConsole(highlight=False, file=stdout())
    return found if found.is_terminal else PlainConsole(highlight=False, width=width, file=stdout())


def print_json(value: Any) -> None:
    """A value for machines: UTF-8, two spaces, keys as they are."""
    echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows for a spreadsheet, the first one's names as the heading."""
    if rows:
        writer = csv.DictWriter(stdout(), list(rows[0]), lineterminator="\n")
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
    rows = Grid("strategy", "purpose", *NUMBERS, right=NUMBERS)
    for line in estimate.lines:
        rows.add_row(line.line.label, line.line.purpose, *_cells([line], line.usd))
    rows.add_row("all", "", *_cells(estimate.lines, estimate.usd))
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

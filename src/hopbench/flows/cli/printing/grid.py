"""A table of text that fits its width with whole headings: fewer columns, folded texts, or one part below another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2
COMFORTABLE = 32
"""Characters of a text beyond which it is folded before a column is dropped."""

LEAST_FOLDED = 14
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
        return min(natural, max(word, LEAST_FOLDED))

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

"""Name the cells of a table by the headings of their columns.

In a wide table the row of headings stands above the other rows, as lines of one block, so that each passage has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LABELLED_COLUMNS = 3  # of the widest table whose cells are labelled; in wider ones labels outweigh the values
LONGEST_HEADING = 80  # characters; a longer one is no name, and each row would repeat it
MAX_COLUMNS = 1000


@dataclass(slots=True)
class Table:
    """The state of a table that is being read.

    `headings` are those of the columns; `heading_blocks` where their rows stand among a page's blocks; `unused` the
    columns whose heading no cell shows yet.
    """

    headings: list[str] = field(default_factory=list)
    heading_blocks: list[int] = field(default_factory=list)
    unused: set[int] = field(default_factory=set)
    in_head: bool = False
    _cells: list[tuple[str, int, bool]] = field(default_factory=list)  # text, columns, whether it is a heading
    _column: int = 0
    _row: int = 0
    _with_text: bool = False  # a row of the body has been read
    _taken_until: dict[int, int] = field(default_factory=dict)  # column → the row that a cell above reaches

    def open_cell(self, tag: str, attributes: Mapping[str, str]) -> int:
        """Return the column in which the next cell stands."""
        while self._taken_until.get(self._column, 0) > self._row:
            self._column += 1
        column = self._column
        width = max(1, min(_count(attributes, "colspan"), MAX_COLUMNS - column))
        if (height := _count(attributes, "rowspan")) > 1 and column < MAX_COLUMNS:
            self._taken_until.update(dict.fromkeys(range(column, column + width), self._row + height))
        self._cells.append(("", width, tag == "th" or self.in_head))
        self._column += width
        return column

    @property
    def fits_labels(self) -> bool:
        """Whether cells are written with the headings of their columns, if there are any."""
        return len(self.headings) <= LABELLED_COLUMNS

    @property
    def labelled(self) -> bool:
        """Whether the next cell is written with the heading of its column."""
        return bool(self.headings) and not self.in_head and self.fits_labels

    def label(self, column: int) -> str:
        """Return the label of a cell in this column."""
        return f"{self.headings[column]}: " if column < len(self.headings) and self.headings[column] else ""

    def close_cell(self, text: str) -> None:
        """Note the text of the cell that was opened last."""
        if self._cells:
            self._cells[-1] = (text, *self._cells[-1][1:])

    def end_row(self, block: int | None) -> bool:
        """End a row, which became the block at this index if it has text; return whether it names the columns."""
        cells, self._cells = self._cells, []
        if not cells:
            return False
        self._column, self._row = 0, self._row + 1
        named = all(heading for _, _, heading in cells) and (len(cells) > 1 or cells[0][1] == 1)
        if not named or self._with_text or (self.headings and not self.in_head):
            self._with_text |= not named
            return False
        texts = [text.rstrip(": ") for text, width, _ in cells for _ in range(width)]
        above = [*self.headings, *[""] * (len(texts) - len(self.headings))]
        below = [*texts, *[""] * (len(above) - len(texts))]
        self.headings = [one if one == two else f"{one} {two}".strip() for one, two in zip(above, below, strict=True)]
        if any(len(heading) > LONGEST_HEADING for heading in self.headings):
            self.headings, self.heading_blocks, self._with_text = [], [], True
            return False
        self.unused = {column for column, heading in enumerate(self.headings) if heading}
        if block is not None:
            self.heading_blocks.append(block)
        return True


def _count(attributes: Mapping[str, str], name: str) -> int:
    value = attributes.get(name, "").strip()
    return min(int(value), MAX_COLUMNS) if value.isdecimal() and len(value) < 9 else 1

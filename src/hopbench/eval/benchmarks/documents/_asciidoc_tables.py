"""Read the tables of AsciiDoc into HTML."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat, zip_longest
from typing import NamedTuple

from hopbench.eval.benchmarks.documents._asciidoc_inline import Inline

COLUMN_LIMIT = 1000
_SPECIFIED = (
    r"(?:(?P<times>\d{1,4})\*|(?P<across>\d{1,4})?(?:\.(?P<down>\d{1,4}))?\+)?[<^>]?(?:\.[<^>])?(?P<style>[aehlmsvd])?"
)
_PARAGRAPH = re.compile(r"<p>((?:(?!<p>).)*)</p>\Z")
_COLUMN = re.compile(r"(?:(\d{1,4})\*)?[^a-z]*([aehlmsvd]?)\s*\Z")


class _Cell(NamedTuple):
    text: str
    style: str
    across: int
    down: int


def table_html(
    lines: Sequence[str], mark: str, style: Mapping[str, str], inline: Inline, blocks: Callable[[str], str]
) -> str:
    """Write a table as HTML, with the headings of its columns where it states them; `blocks` writes AsciiDoc cells."""
    given = {",": "csv", ":": "dsv"}.get(mark, style.get("format", "psv"))
    separator = style.get("separator", {"csv": ",", "dsv": ":", "tsv": "\t"}.get(given, mark))
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    if given == "psv":
        cells = list(_cells("\n".join(lines), separator, inline))
        own = len(list(_cells(lines[first], separator, inline))) if lines else 0
    else:
        rows = list(csv.reader([line for line in lines if line.strip()], delimiter=separator))
        cells = [_Cell(" ".join(cell.split()), "", 1, 1) for row in rows for cell in row]
        own = len(rows[0]) if rows else 0
    columns = _columns(style["cols"]) if "cols" in style else [""] * min(own, COLUMN_LIMIT)
    if not columns:
        return ""
    options = style.get("options", "")
    implied = first == 0 and len(lines) > 1 and not lines[1].strip() and own == len(columns)
    header = "header" in options or (implied and "noheader" not in options)
    written = ["<table>"]
    for number, row in enumerate(_rows(cells, len(columns))):
        tag = "th" if header and number == 0 else "td"
        filled = "".join(
            f"<{tag}{_span(cell)}>{_content(cell, cell.style or columns[place], inline, blocks)}</{tag}>"
            for place, cell in row
        )
        written.append(f"<thead><tr>{filled}</tr></thead>" if tag == "th" else f"<tr>{filled}</tr>")
    return "\n".join([*written, "</table>"])


def _columns(specified: str) -> list[str]:
    """The style of each column."""
    made: list[str] = []
    for one in re.split("[,;]", specified):
        found = _COLUMN.match(one.strip())
        made += [found[2] if found else ""] * (int(found[1] or 1) if found else 1)
    return made[:COLUMN_LIMIT]


def _cells(text: str, separator: str, inline: Inline) -> Iterator[_Cell]:
    """Yield the cells; what stands at the begin of a line or after a space before a separator says how to read one."""
    marks = list(re.finditer(rf"(?:(?:^|(?<=[ \t])){_SPECIFIED})?(?<!\\){re.escape(separator)}", text, re.MULTILINE))
    for found, after in zip_longest(marks, marks[1:]):
        content = text[found.end() : after.start() if after else None].replace(f"\\{separator}", separator).strip()
        times = int(found["times"] or 1)
        inline.grow((times - 1) * (len(content) + 10))
        across, down = (int(found[name] or 1) for name in ("across", "down"))
        yield from repeat(_Cell(content, found["style"] or "", across, down), times)


def _rows(cells: Iterable[_Cell], width: int) -> Iterator[list[tuple[int, _Cell]]]:
    """Lay the cells out in rows, each with its column; those that reach over others take their places."""
    occupied = [0] * width
    row: list[tuple[int, _Cell]] = []
    column = 0
    for cell in cells:
        while occupied[column]:
            occupied[column] -= 1
            column = (column + 1) % width
            if column == 0 and row:
                yield row
                row = []
        across = max(1, min(cell.across, width - column))
        row.append((column, cell))
        for place in range(column, column + across):
            occupied[place] = max(cell.down - 1, 0)
        column += across
        while column < width and occupied[column]:
            occupied[column] -= 1
            column += 1
        if column == width:
            yield row
            row, column = [], 0
    if row:
        yield row


def _span(cell: _Cell) -> str:
    named = {"colspan": cell.across, "rowspan": cell.down}
    return "".join(f' {name}="{count}"' for name, count in named.items() if count > 1)


def _content(cell: _Cell, style: str, inline: Inline, blocks: Callable[[str], str]) -> str:
    if style == "a":
        return _PARAGRAPH.sub(r"\1", blocks(cell.text))
    if style == "l":
        return f"<pre>{cell.text.replace('&', '&amp;').replace('<', '&lt;')}</pre>"
    return "<br>".join(inline.html(part) for part in re.split(r"\n[ \t]*\n", cell.text))

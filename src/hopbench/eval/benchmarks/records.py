"""The records of a file, whatever its layout: JSON lines, a JSON array, CSV, TSV, Parquet or Arrow.

The standard `csv` reader serves here rather than pandas, because it knows on which line of the file a record ends
and the messages need that.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from hopbench.eval.benchmarks.cells import FIELDS, refuse_repeated, with_nested_values
from hopbench.eval.benchmarks.fields import Place, Record, Rows
from hopbench.eval.benchmarks.files import first_character, read_json_array, read_jsonl, read_lines
from hopbench.eval.benchmarks.gzip_file import ENDING
from hopbench.retrieval.support.errors import InputError

COLUMNAR = (".parquet", ".arrow")
TABLES = (".csv", ".tsv", *COLUMNAR)
_CELL_LIMIT = 1 << 26  # only so that the 1 MiB limit can speak first: csv's own limit is 128 KiB


def layout_ending(path: Path) -> str:
    """The ending of a file's name that says how it is laid out: `.jsonl` of `corpus.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix.lower() == ENDING else path).suffix.lower()


def read_table(path: Path) -> Rows:
    """The rows of a table as records; the first line of a CSV or TSV names the fields.

    The place of a CSV record that spans several lines is its last one.
    """
    ending = layout_ending(path)
    if ending in COLUMNAR:
        from hopbench.eval.benchmarks.arrow_files import read_arrow  # 0.4 s, and most corpora are JSONL

        return read_arrow(path)
    return _read_delimited(path, "\t" if ending == ".tsv" else ",")


def _read_delimited(path: Path, usual: str) -> Iterator[tuple[Place, Record]]:
    lines = _CountedLines(path)
    counted = iter(lines)
    try:
        first = next((line for line in counted if line.strip()), "")
        reader = csv.reader(chain([first], counted), delimiter=_delimiter(first, usual), strict=True)
        rows = _rows(reader)
        header = [name.strip() for name in next((cells for cells in rows if any(cells)), [])]
        if not header:
            raise InputError(f"{path}: is empty: the first line must name the columns, such as _id, title, text")
        refuse_repeated(path, header)
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield lines.place, _record(cells, header, lines.place)
    except csv.Error as error:
        raise lines.place.error(f"not a readable table ({error}): put cells that hold quotes in quotes") from error


def _delimiter(header: str, usual: str) -> str:
    """What parts the cells of the header: of comma, semicolon and tab the one that gives most names known here."""

    def known(delimiter: str) -> int:
        cells = next(_rows(csv.reader([header], delimiter=delimiter)), [])
        return len(FIELDS.intersection(cell.strip() for cell in cells))

    return max((usual, ",", ";", "\t"), key=known)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """A reader's rows, each read under our limit, which is the whole process's and so never left standing."""
    while True:
        before = csv.field_size_limit(_CELL_LIMIT)
        try:
            cells = next(reader, None)
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        yield cells


class _CountedLines:
    """Feeds `csv` line by line and remembers where it is."""

    def __init__(self, path: Path) -> None:
        self._lines = read_lines(path, blank=True)
        self.place = Place(str(path), "line", 1)

    def __iter__(self) -> Iterator[str]:
        for place, text in self._lines:
            self.place = place
            yield text + "\n"


def _record(cells: list[str], header: list[str], place: Place) -> Record:
    if len(cells) != len(header):
        raise place.error(f"has {len(cells)} columns where the header names {len(header)} ({', '.join(header)})")
    return with_nested_values(dict(zip(header, cells, strict=True)), place)


def read_records(path: Path) -> Rows:
    """The records of a JSONL, JSON array, CSV, TSV, Parquet or Arrow file, in order; text files may be gzip files.

    Tables are recognised by the file's ending, a JSON array by its first character, whatever the ending.
    """
    if layout_ending(path) in TABLES:
        return read_table(path)
    return read_json_array(path) if first_character(path) == "[" else read_jsonl(path)

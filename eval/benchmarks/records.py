"""The records of a file, whatever its layout: JSON lines, a JSON array, CSV, TSV or Parquet.

The standard `csv` reader serves here rather than pandas, because it knows on which line of the file a record ends
and the messages need that; `pyarrow` keeps a Parquet file's nested lists and nulls as they are.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, Rows
from hopbench.eval.benchmarks.files import first_character, read_json_array, read_jsonl, read_lines
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import unreadable

TABLES = (".csv", ".tsv", ".parquet")
_CELL_LIMIT = 1 << 26  # only so that the 1 MiB limit can speak first: csv's own limit is 128 KiB
_BATCH = 4096


def read_table(path: Path) -> Rows:
    """The rows of a table as records; the first line of a CSV or TSV names the fields.

    The place of a CSV record that spans several lines is its last one.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(path)
    return _read_delimited(path, "\t" if suffix == ".tsv" else ",")


def _read_delimited(path: Path, delimiter: str) -> Iterator[tuple[Place, Record]]:
    lines = _CountedLines(path)
    rows = _rows(csv.reader(iter(lines), delimiter=delimiter, strict=True))
    try:
        header = next((cells for cells in rows if any(cells)), None)
        if header is None:
            raise InputError(f"{path}: is empty: the first line must name the columns, such as _id, title, text")
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield lines.place, _record(cells, header, lines.place)
    except csv.Error as error:
        raise lines.place.error(f"not a readable table ({error}): put cells that hold quotes in quotes") from error


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
    record: Record = dict(zip(header, cells, strict=True))
    for name in ("answer_aliases", "gold", "metadata"):
        value = record.get(name, "")
        if value[:1] in ("[", "{"):
            try:
                record[name] = json.loads(value)
            except ValueError as error:
                raise place.error(f"field {name!r} is not JSON ({error})") from error
        elif not value:
            record.pop(name, None)
    return record


def _read_parquet(path: Path) -> Iterator[tuple[Place, Record]]:
    import pyarrow as pa  # 0.4 s, and most corpora are JSONL
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(_BATCH):
                for record in batch.to_pylist():
                    number += 1
                    yield Place(str(path), "row", number), record
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: not a Parquet file ({str(error).splitlines()[0]}): write it again") from error
    except OSError as error:
        raise unreadable(str(path), error) from error


def read_records(path: Path) -> Rows:
    """The records of a JSONL, JSON array, CSV, TSV or Parquet file, in order.

    Tables are recognised by the file's suffix, a JSON array by its first character, whatever the suffix.
    """
    if path.suffix.lower() in TABLES:
        return read_table(path)
    return read_json_array(path) if first_character(path) == "[" else read_jsonl(path)

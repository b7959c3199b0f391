"""The records of a file in any layout (JSON lines, a JSON array, CSV, TSV, Parquet, Arrow), or of a split of files.

The standard `csv` reader serves rather than pandas: it knows on which line a record ends, which messages need.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.fields import Place, Record, Rows
from hopbench.eval.benchmarks.files import (
    FIELDS,
    GZIP,
    first_character,
    read_json,
    read_json_array,
    read_jsonl,
    read_lines,
    refuse_repeated,
    with_nested_values,
)
from hopbench.retrieval.support.errors import InputError

COLUMNAR = (".parquet", ".arrow")
TABLES = (".csv", ".tsv", *COLUMNAR)
_CELL_LIMIT = 1 << 26  # above the 1 MiB text limit, whose message is better; csv's default is 128 KiB


def layout_ending(path: Path) -> str:
    """Return the file extension that tells the layout: `.jsonl` for `corpus.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix.lower() == GZIP else path).suffix.lower()


def read_table(path: Path) -> Rows:
    """The rows of a table as records; the first line of a CSV or TSV names the fields.

    The place of a CSV record that spans several lines is its last one.
    """
    ending = layout_ending(path)
    if ending in COLUMNAR:
        from hopbench.eval.benchmarks._arrow import read_arrow  # 0.4 s, and most corpora are JSONL

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
    """Choose the delimiter of the header: comma, semicolon or tab, whichever gives the most known column names."""

    def known(delimiter: str) -> int:
        cells = next(_rows(csv.reader([header], delimiter=delimiter)), [])
        return len(FIELDS.intersection(cell.strip() for cell in cells))

    return max((usual, ",", ";", "\t"), key=known)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """Read rows under `_CELL_LIMIT`, which is global in `csv` and therefore reset after each row."""
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
    """Feed `csv` line by line and track the current line."""

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


EVALUATION_SPLITS = ("validation", "dev", "test", "train")  # multi-hop test splits have no public gold
GOLD_SPLITS = ("test", "validation", "dev", "train")
Splits = Mapping[str, Sequence[Path]]

_SPLIT_ENDINGS = (".jsonl", ".json", *TABLES)
_SAVED = ("state.json", "dataset_info.json")
_DICT = "dataset_dict.json"
_SHARD = re.compile(r"(?P<split>.+?)-\d+-of-(?P<count>\d+)(-\w+)?")  # test-00000-of-00002.parquet


def rows_of(files: Sequence[Path]) -> Iterator[tuple[Place, Record]]:
    """Yield the records of all files, one file after another."""
    for file in files:
        yield from read_records(file)


def chosen_split(folder: Path, splits: Splits, preferred: Iterable[str]) -> Sequence[Path]:
    """Return the files of the first preferred split that exists, else of the only one."""
    return splits[split_name(folder, splits, preferred)]


def split_name(folder: Path, splits: Splits, preferred: Iterable[str]) -> str:
    """Return the first preferred split that exists, else the only one; refuse several other splits."""
    name = next((one for one in preferred if one in splits), None)
    if name is None and len(splits) == 1:
        name = next(iter(splits))
    if name is None:
        raise InputError(
            f"{folder}: has the splits {', '.join(sorted(splits)) or '(none)'}, and which to read is not clear: put "
            "the files of one of them into a folder of their own"
        )
    return name


def splits_of(folder: Path) -> Splits:
    """Return split → files for a folder of tables; empty if it holds none."""
    if (saved := saved_splits(folder)) is not None:
        return saved
    return by_split(sorted([*folder.glob("*"), *folder.glob("*/*")]), folder) if folder.is_dir() else {}


def by_split(files: Iterable[Path], folder: Path) -> Splits:
    """Group tables by split (files of other types are skipped); refuse missing shards."""
    splits: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        if layout_ending(file) in _SPLIT_ENDINGS and not file.name.startswith(".") and file.is_file():
            splits[_split(file, folder)].append(file)
    for split, shards in splits.items():
        counts = {int(match["count"]) for file in shards if (match := _SHARD.fullmatch(_stem(file)))}
        if counts and counts != {len(shards)}:
            raise InputError(
                f"{folder}: holds {len(shards)} of the {max(counts)} files of the split {split!r}: download the others"
            )
    return splits


def _split(file: Path, folder: Path) -> str:
    stem = _stem(file)
    if match := _SHARD.fullmatch(stem):
        return match["split"]
    if stem.isdecimal():  # 0000.parquet, as the Hub converts a set: its folder is the split
        return file.parent.name if file.parent != folder else ""
    return stem


def _stem(file: Path) -> str:
    return (file.with_suffix("") if file.suffix.lower() == GZIP else file).stem


def saved_splits(folder: Path) -> Splits | None:
    """Split → files of a folder that `save_to_disk` wrote, `""` for a data set without splits; None for any other."""
    if (folder / _DICT).is_file():
        names = _field(folder / _DICT, "splits")
        return {name: _saved_files(folder / _inside(name)) for name in names}
    return {"": _saved_files(folder)} if all((folder / name).is_file() for name in _SAVED) else None


def _saved_files(folder: Path) -> Sequence[Path]:
    files = [one.get("filename") if isinstance(one, dict) else one for one in _field(folder / _SAVED[0], "_data_files")]
    return [folder / _inside(name) for name in files]


def _field(file: Path, name: str) -> list[Any]:
    content = read_json(file)
    value = content.get(name) if isinstance(content, dict) else None
    if not isinstance(value, list):
        raise InputError(f"{file}: field {name!r} must be a list, as `save_to_disk` writes it: save the data set again")
    return value


def _inside(name: object) -> str:
    """Return the last part of a file name, so that it cannot lead outside the folder."""
    return Path(str(name)).name

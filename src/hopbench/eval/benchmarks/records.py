"""Read the records of a file in any layout (JSON lines, a JSON array, CSV, TSV, Parquet, Arrow), or of a split.

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

from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import (
    FIELDS,
    GZIP,
    as_record,
    first_character,
    parse_json,
    read_json,
    read_lines,
    refuse_columns,
    with_nested_values,
)
from hopbench.retrieval.support.errors import InputError

COLUMNAR = (".parquet", ".arrow")
TABLES = (".csv", ".tsv", *COLUMNAR)
_CELL_LIMIT = 1 << 26  # above the 1 MiB text limit, whose message is better; csv's default is 128 KiB


def layout_ending(path: Path) -> str:
    """Return the file extension that tells the layout: `.jsonl` for `corpus.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix.lower() == GZIP else path).suffix.lower()


def read_records(path: Path) -> Iterator[tuple[Place, Record]]:
    """Yield the records of a JSONL, JSON array, CSV, TSV, Parquet or Arrow file; text files may be gzip files.

    Tables are recognised by the file's ending, a JSON array by its first character. The place of a CSV record that
    spans several lines is its last one.
    """
    ending = layout_ending(path)
    if ending in COLUMNAR:
        from hopbench.eval.benchmarks._arrow import read_arrow  # 0.4 s, and most corpora are JSONL

        yield from read_arrow(path)
    elif ending in TABLES:
        yield from _read_delimited(path, "\t" if ending == ".tsv" else ",")
    elif first_character(path) == "[":  # as HotpotQA and 2WikiMultihopQA are published
        for number, value in enumerate(read_json(path), start=1):
            place = Place(str(path), "record", number)
            yield place, as_record(value, place)
    else:
        for place, text in read_lines(path):
            yield place, as_record(parse_json(text, place), place)


def _read_delimited(path: Path, usual: str) -> Iterator[tuple[Place, Record]]:
    place = Place(str(path), "line", 1)

    def lines() -> Iterator[str]:
        nonlocal place
        for line_place, text in read_lines(path, blank=True):
            place = line_place
            yield text + "\n"

    counted = lines()
    try:
        first = next((line for line in counted if line.strip()), "")
        rows = _rows(csv.reader(chain([first], counted), delimiter=_delimiter(first, usual), strict=True))
        header = [name.strip() for name in next((cells for cells in rows if any(cells)), [])]
        if not header:
            raise InputError(f"{path}: is empty: the first line must name the columns, such as _id, title, text")
        refuse_columns(path, header)
        for cells in rows:
            if any(cell.strip() for cell in cells):
                if len(cells) != len(header):
                    names = ", ".join(header)
                    raise place.error(f"has {len(cells)} columns where the header names {len(header)} ({names})")
                yield place, with_nested_values(dict(zip(header, cells, strict=True)), place)
    except csv.Error as error:
        raise place.error(f"not a readable table ({error}): put cells that hold quotes in quotes") from error


def _delimiter(header: str, usual: str) -> str:
    """Choose comma, semicolon or tab, whichever gives the most known column names."""

    def known(delimiter: str) -> int:
        cells = next(_rows(csv.reader([header], delimiter=delimiter)), [])
        return len(FIELDS.intersection(cell.strip() for cell in cells))

    return max((usual, ",", ";", "\t"), key=known)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """Read rows under `_CELL_LIMIT`, a setting of the whole process in `csv`, which is reset after each row."""
    while True:
        before = csv.field_size_limit(_CELL_LIMIT)
        try:
            cells = next(reader, None)
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        yield cells


EVALUATION_SPLITS = ("validation", "dev", "test", "train")  # multi-hop test splits have no public gold
GOLD_SPLITS = ("test", "validation", "dev", "train")
Splits = Mapping[str, Sequence[Path]]

_SPLIT_ENDINGS = (".jsonl", ".json", *TABLES)
_STATE, _DICT = "state.json", "dataset_dict.json"
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
    """Map split → files of a folder of tables; empty if it holds none."""
    if (saved := saved_splits(folder)) is not None:
        return saved
    return by_split(sorted([*folder.glob("*"), *folder.glob("*/*")]), folder) if folder.is_dir() else {}


def by_split(files: Iterable[Path], folder: Path) -> Splits:
    """Group tables by split (files of other types are skipped); refuse missing shards."""
    splits: dict[str, list[Path]] = defaultdict(list)
    counts: dict[str, set[int]] = defaultdict(set)
    for file in files:
        if layout_ending(file) not in _SPLIT_ENDINGS or file.name.startswith(".") or not file.is_file():
            continue
        split = (file.with_suffix("") if file.suffix.lower() == GZIP else file).stem
        if shard := _SHARD.fullmatch(split):
            split = shard["split"]
            counts[split].add(int(shard["count"]))
        elif split.isdecimal():  # 0000.parquet, as the Hub converts a set: its folder is the split
            split = file.parent.name if file.parent != folder else ""
        splits[split].append(file)
    for split, expected in counts.items():
        if expected != {len(splits[split])}:
            raise InputError(
                f"{folder}: holds {len(splits[split])} of the {max(expected)} files of the split {split!r}: download "
                "the others"
            )
    return splits


def saved_splits(folder: Path) -> Splits | None:
    """Split → files of a folder that `save_to_disk` wrote, `""` for a data set without splits; None for any other.

    Only the last part of a name is taken, so that it cannot lead outside the folder.
    """

    def listed(file: Path, name: str) -> list[Any]:
        content = read_json(file)
        value = content.get(name) if isinstance(content, dict) else None
        if not isinstance(value, list):
            raise InputError(
                f"{file}: field {name!r} must be a list, as `save_to_disk` writes it: save the data set again"
            )
        return value

    def files(place: Path) -> Sequence[Path]:
        names = [one.get("filename") if isinstance(one, dict) else one for one in listed(place / _STATE, "_data_files")]
        return [place / Path(str(name)).name for name in names]

    if (folder / _DICT).is_file():
        return {name: files(folder / Path(str(name)).name) for name in listed(folder / _DICT, "splits")}
    return {"": files(folder)} if (folder / _STATE).is_file() and (folder / "dataset_info.json").is_file() else None

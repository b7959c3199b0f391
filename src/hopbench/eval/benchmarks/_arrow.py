"""Parquet and Arrow files as records; what JSON has no value for is read as text, and NaN as nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import parse_json, refuse_repeated, with_nested_values
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular, unreadable

_BATCH = 4096
_POINTER = b"version https://git-lfs"
_ARROW_FILE = b"ARROW1"
Convert = Callable[[Any, Place], Any]


def read_arrow(path: Path) -> Iterator[tuple[Place, Record]]:
    """The rows of a Parquet file, or of an Arrow file as `Dataset.save_to_disk` writes them.

    Columns of the type `arrow.json` hold the JSON text of mixed values, as `datasets` writes them: it is parsed.

    Raises
    ------
    InputError
        For another kind of file, a damaged one, and a value that cannot be read.
    """
    kind = "a Parquet" if path.suffix.lower() == ".parquet" else "an Arrow"
    start = _start(path)
    try:
        number = 0
        for batch in _parquet(path) if kind == "a Parquet" else _arrow(path, start):
            refuse_repeated(path, batch.schema.names)
            converts = {column.name: convert for column in batch.schema if (convert := _convert(column.type))}
            for record in batch.to_pylist():
                number += 1
                place = Place(str(path), "row", number)
                for name, convert in converts.items():
                    if record[name] is not None:
                        record[name] = convert(record[name], place)
                yield place, with_nested_values(record, place)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if start.startswith(_POINTER):
            raise InputError(f"{path}: is a Git LFS pointer, not the file itself: run `git lfs pull` there") from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: not {kind} file ({reason}): write or download it again") from error


def _start(path: Path) -> bytes:
    try:
        with regular(path).open("rb") as file:
            return file.read(len(_POINTER))
    except OSError as error:
        raise unreadable(str(path), error) from error


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(_BATCH)


def _arrow(path: Path, start: bytes) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        if start.startswith(_ARROW_FILE):
            reader = pa.ipc.open_file(source)
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(source)


def _convert(kind: pa.DataType) -> Convert | None:
    """What makes a value of JSON of a column's values; None where they are such values."""
    if isinstance(kind, pa.DictionaryType):
        return _convert(kind.value_type)
    if pa.types.is_struct(kind):
        return _in_object({field.name: convert for field in kind if (convert := _convert(field.type))})
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _in_list(_convert(kind.value_type))
    return next((convert for is_kind, convert in _CONVERTS if is_kind(kind)), None)


def _in_list(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda values, place: [None if one is None else convert(one, place) for one in values]


def _in_object(converts: Mapping[str, Convert]) -> Convert | None:
    def convert(record: Record, place: Place) -> Record:
        changed = {name: one(record[name], place) for name, one in converts.items() if record[name] is not None}
        return {**record, **changed}

    return convert if converts else None


def _number(value: float, place: Place) -> float | None:
    return None if math.isnan(value) else value


def _object(pairs: list[tuple[Any, Any]], place: Place) -> dict[str, Any]:
    return {str(key): value for key, value in pairs}


def _text(value: object, place: Place) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _decoded(value: bytes, place: Place) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise place.error(f"holds bytes that are not UTF-8 ({error.reason}): write texts as strings") from error


_CONVERTS: tuple[tuple[Callable[[pa.DataType], bool], Convert], ...] = (
    (lambda kind: isinstance(kind, pa.JsonType), parse_json),
    (pa.types.is_floating, _number),
    (pa.types.is_temporal, _text),
    (pa.types.is_decimal, _text),
    (pa.types.is_binary, _decoded),
    (pa.types.is_large_binary, _decoded),
    (pa.types.is_map, _object),
)
"""Kind of column → what makes a value of JSON of its values."""

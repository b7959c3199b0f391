"""Read Parquet and Arrow files as records; what JSON has no value for is read as text, and NaN as null."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import opened, parse_json, refuse_columns, with_nested_values
from hopbench.retrieval.support.errors import InputError

_BATCH = 4096
_POINTER = b"version https://git-lfs"
_ARROW_FILE = b"ARROW1"
Convert = Callable[[Any, Place], Any]


def read_arrow(path: Path) -> Iterator[tuple[Place, Record]]:
    """Yield the rows of a Parquet file, or of an Arrow file as `Dataset.save_to_disk` writes them."""
    kind = "a Parquet" if path.suffix.lower() == ".parquet" else "an Arrow"
    with opened(path) as file:
        start = file.read(len(_POINTER))
    try:
        number = 0
        for batch in _batches(path, start):
            refuse_columns(path, batch.schema.names)
            converts = {column.name: convert for column in batch.schema if (convert := _convert(column.type))}
            for record in batch.to_pylist():
                number += 1
                place = Place(str(path), "row", number)
                yield place, with_nested_values(_convert_fields(converts, record, place), place)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if start.startswith(_POINTER):
            raise InputError(f"{path}: is a Git LFS pointer, not the file itself: run `git lfs pull` there") from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: not {kind} file ({reason}): write or download it again") from error


def _batches(path: Path, start: bytes) -> Iterator[pa.RecordBatch]:
    if path.suffix.lower() == ".parquet":
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(_BATCH)
        return
    with pa.memory_map(str(path)) as source:
        if start.startswith(_ARROW_FILE):
            reader = pa.ipc.open_file(source)
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(source)


def _convert(kind: pa.DataType) -> Convert | None:
    """Choose the conversion of a column's values to values of JSON; None where they are such values."""
    if isinstance(kind, pa.DictionaryType):
        return _convert(kind.value_type)
    if pa.types.is_struct(kind):
        converts = {field.name: convert for field in kind if (convert := _convert(field.type))}
        return partial(_convert_fields, converts) if converts else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if (convert := _convert(kind.value_type)) is None:
            return None
        return lambda values, place: [None if one is None else convert(one, place) for one in values]
    return next((convert for is_kind, convert in _CONVERTS if is_kind(kind)), None)


def _convert_fields(converts: Mapping[str, Convert], record: Record, place: Place) -> Record:
    for name, convert in converts.items():
        if record[name] is not None:
            record[name] = convert(record[name], place)
    return record


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
    (pa.types.is_floating, lambda value, _: None if math.isnan(value) else value),
    (pa.types.is_temporal, _text),
    (pa.types.is_decimal, _text),
    (pa.types.is_binary, _decoded),
    (pa.types.is_large_binary, _decoded),
    (pa.types.is_map, lambda pairs, _: {str(key): value for key, value in pairs}),
)
"""Type of column → conversion of its values to values of JSON."""

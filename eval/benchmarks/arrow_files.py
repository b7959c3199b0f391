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

from hopbench.eval.benchmarks.cells import with_nested_values
from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import parse_json
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular

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
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    start = _start(path)
    try:
        number = 0
        for batch in _parquet(path) if kind == "Parquet" else _arrow(path, start):
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
        raise InputError(f"{path}: not a {kind} file ({reason}): write or download it again") from error


def _start(path: Path) -> bytes:
    from hopbench.retrieval.support.input_files import unreadable

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
    if isinstance(kind, pa.JsonType):
        return parse_json_text
    if isinstance(kind, pa.DictionaryType):
        return _convert(kind.value_type)
    if pa.types.is_struct(kind):
        return _in_object({field.name: convert for field in kind if (convert := _convert(field.type))})
    if pa.types.is_map(kind):
        return lambda pairs, place: dict(pairs)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _in_list(_convert(kind.value_type))
    if pa.types.is_floating(kind):
        return lambda value, place: None if math.isnan(value) else value
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return lambda value, place: _text(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _decoded
    return None


def parse_json_text(text: Any, place: Place) -> Any:
    """The value of a JSON text, or what is no text as it stands."""
    return parse_json(text, place) if isinstance(text, str) else text


def _in_list(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda values, place: [None if one is None else convert(one, place) for one in values]


def _in_object(converts: Mapping[str, Convert]) -> Convert | None:
    def convert(record: Record, place: Place) -> Record:
        changed = {name: one(record[name], place) for name, one in converts.items() if record[name] is not None}
        return {**record, **changed}

    return convert if converts else None


def _text(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _decoded(value: bytes, place: Place) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise place.error(f"holds bytes that are not UTF-8 ({error.reason}): write texts as strings") from error

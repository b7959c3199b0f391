"""Read text files by line or as one JSON value, compressed with gzip or not, and the values of tables' cells.

Errors name file, line and column. Cells hold lists as JSON text, and whole numbers of columns with gaps as floats.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hopbench.eval.benchmarks.fields import Place, Record, kind
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular, unreadable

GZIP = ".gz"
WHOLE_LIMIT = 2 * 1024**3  # bytes of a file that is read at once; HotpotQA's training file has 0.6 GB
RATIO_LIMIT = 200  # text shrinks to a third or a tenth; gzip makes at most 1,030 bytes of one
ALWAYS_ALLOWED = 4 * 1024 * 1024  # decompressed bytes, whatever the ratio
_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open an ordinary file; unfold it, up to `RATIO_LIMIT`, where it begins as gzip does, whatever its name."""
    try:
        with regular(path).open("rb") as file:
            compressed = file.read(len(_MAGIC)) == _MAGIC
            file.seek(0)
            if compressed:
                content: io.RawIOBase = _Unfolded(path, file)
                yield io.BufferedReader(content, _BLOCK)
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}): download or compress it again") from error
    except OSError as error:
        raise unreadable(str(path), error) from error


class _Unfolded(io.RawIOBase):
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file, self._content, self._size = path, file, gzip.GzipFile(fileobj=file), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override] # the library's is a union of buffers
        count = self._content.readinto(buffer)
        self._size += count
        if self._size > max(ALWAYS_ALLOWED, RATIO_LIMIT * self._file.tell()):
            raise InputError(
                f"{self._path}: its first {self._file.tell():,} bytes unfold to {self._size:,}, and over {RATIO_LIMIT} "
                "times as many is the limit, as no text has that: decompress it yourself if you want to read it"
            )
        return count


_BOM = b"\xef\xbb\xbf"
LINE_LIMIT = 16 * 1024 * 1024  # bytes: a passage may have 1 MiB, its metadata as much as it likes
DEPTH_LIMIT = 100


def read_lines(path: Path, *, blank: bool = False) -> Iterator[tuple[Place, str]]:
    """Stream lines without their ends and a leading BOM; blank ones only with `blank` (they are text in a CSV cell)."""
    offset, place_of = 0, partial(Place, str(path), "line")
    with opened(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(LINE_LIMIT + 1), b""), start=1):
            if len(raw) > LINE_LIMIT:
                problem = f"over {LINE_LIMIT:,} bytes long, which is the limit: write a record on each line"
                raise place_of(number).error(problem)
            line = raw.removeprefix(_BOM) if number == 1 else raw
            try:
                text = line.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                at = offset + error.start + len(raw) - len(line)
                raise _not_utf8(place_of(number), at, raw[:2]) from error
            offset += len(raw)
            if blank or (text and not text.isspace()):
                yield place_of(number), text


def _not_utf8(place: Place, offset: int, start: bytes) -> InputError:
    looks = " (it looks like UTF-16)" if start in {b"\xff\xfe", b"\xfe\xff"} else ""
    return place.error(f"not UTF-8 at byte {offset:,} of the file{looks}: save the file as UTF-8")


def parse_json(text: str, place: Place, field: str = "") -> Any:
    """Parse a line or a field's value; if it is not JSON, the error names the column."""
    subject = f"field {field!r} is not" if field else "not"
    remedy = 'write a list as ["a", "b"]' if field else "correct or remove the line"
    try:
        value = _DECODER.decode(text)
        if text.count("[") + text.count("{") > DEPTH_LIMIT:
            _refuse_depth(value)
    except json.JSONDecodeError as error:
        raise place.error(f"{subject} JSON ({error.msg} at column {error.colno}): {remedy}") from error
    except RecursionError as error:
        raise place.error(
            f"{subject} JSON that can be read (nested too deeply, over {DEPTH_LIMIT} levels): {remedy}"
        ) from error
    except ValueError as error:  # an integer with thousands of digits
        raise place.error(f"{subject} JSON that can be read ({error}): {remedy}") from error
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # one for all lines: making it takes longer than reading


def _refuse_depth(value: Any) -> None:
    """Raise RecursionError where the value is deeper than what is later written, copied and sent may be."""
    level, depth = [value], 0
    while level:
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        level = [inner for inner in level if isinstance(inner, dict | list)]
        depth += 1
        if depth > DEPTH_LIMIT:
            raise RecursionError(f"over {DEPTH_LIMIT} levels")


def as_record(value: Any, place: Place) -> Record:
    """Return a JSON object; refuse any other value."""
    if not isinstance(value, dict):
        raise place.error(f"must be a JSON object with named fields, not {kind(value)}")
    return value


class Pairs(list[tuple[str, Any]]):
    """The keys and values of an object of JSON in their order; a key may come twice."""


def read_json(path: Path, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Read the JSON value of a file of at most `WHOLE_LIMIT` bytes; `pairs` makes the value of an object."""
    with opened(path) as file:
        data = bytearray()
        while block := file.read(_BLOCK):
            data += block
            if len(data) > WHOLE_LIMIT:
                raise InputError(
                    f"{path}: over {WHOLE_LIMIT:,} bytes, which is the limit for a file of one JSON value: write JSON "
                    "lines, a record on each"
                )
    data = data.removeprefix(_BOM)
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=pairs)
        _refuse_depth(value)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_utf8(Place(str(path), "line", line), error.start, bytes(data[:2])) from error
    except json.JSONDecodeError as error:
        place = Place(str(path), "line", error.lineno)
        raise place.error(
            f"not JSON ({error.msg} at column {error.colno}): download or write the file again"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path}: not JSON that can be read ({error}): download or write the file again") from error
    return value


def first_character(path: Path) -> str:
    """Return the first character in the first 4 KiB that is not white space; empty when there is none."""
    with opened(path) as file:
        return file.read(4096).removeprefix(_BOM).lstrip()[:1].decode(errors="replace")


FIELDS = frozenset(
    """_id id text title question answer answer_aliases type gold metadata page_number document_id document_name
    context supporting_facts paragraphs query-id corpus-id score""".split()
)
"""The columns that are read."""
_NESTED = (
    *("answer", "answer_aliases", "gold", "metadata"),
    *("context", "supporting_facts", "evidences", "paragraphs", "question_decomposition"),
)


def refuse_columns(path: Path, names: Sequence[str]) -> None:
    """Refuse a table that has a column twice, of which only one could be read."""
    for name in FIELDS:
        if names.count(name) > 1:
            raise InputError(f"{path}: has the column {name!r} {names.count(name)} times: remove or rename all but one")


def with_nested_values(record: Record, place: Place) -> Record:
    """Parse lists and objects given as JSON text (not an answer such as "[sic]"); drop empty cells."""
    for name in _NESTED:
        value = record.get(name, "")
        if value == "":
            record.pop(name, None)
        elif isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            record[name] = _nested(name, value.strip(), place)
    return record


def _nested(name: str, text: str, place: Place) -> Any:
    if text.startswith("['"):  # Python's own text of a list, as pandas writes it into a CSV file
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = ast.literal_eval(text)
            if isinstance(value, list) and repr(value) == text:
                return value
    if name == "answer" and not (text[:2] in {'["', "['"} and text.endswith("]")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return value if isinstance(value, list) else text
    return parse_json(text, place, name)

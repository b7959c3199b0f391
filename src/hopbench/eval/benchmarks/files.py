"""Text files read line by line or as one JSON value, compressed or not; errors name file, line and column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.fields import Place, Record, kind
from hopbench.eval.benchmarks.gzip_file import opened, read_whole
from hopbench.retrieval.support.errors import InputError

_BOM = b"\xef\xbb\xbf"
LINE_LIMIT = 16 * 1024 * 1024  # bytes: a passage may have 1 MiB, its metadata as much as it likes
DEPTH_LIMIT = 100


def read_lines(path: Path, *, blank: bool = False) -> Iterator[tuple[Place, str]]:
    """The lines of a file, streamed, without their ends (LF or CRLF) and without a leading BOM.

    Blank lines are left out unless `blank` asks for them (inside a quoted CSV cell they are text).

    Raises
    ------
    InputError
        When the file is missing or unreadable, or holds bytes that are not UTF-8 (line and byte offset are named).
    """
    offset = 0
    name = str(path)
    with opened(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(LINE_LIMIT + 1), b""), start=1):
            if len(raw) > LINE_LIMIT:
                raise Place(name, "line", number).error(
                    f"over {LINE_LIMIT:,} bytes long, which is the limit: write a record on each line"
                )
            line = raw.removeprefix(_BOM) if number == 1 else raw
            try:
                text = line.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                at = offset + error.start + len(raw) - len(line)
                raise _not_utf8(Place(name, "line", number), at, raw[:2]) from error
            offset += len(raw)
            if blank or (text and not text.isspace()):
                yield Place(name, "line", number), text


def _not_utf8(place: Place, offset: int, start: bytes) -> InputError:
    looks = " (it looks like UTF-16)" if start in {b"\xff\xfe", b"\xfe\xff"} else ""
    return place.error(f"not UTF-8 at byte {offset:,} of the file{looks}: save the file as UTF-8")


def parse_json(text: str, place: Place, field: str = "") -> Any:
    """The JSON value of `text`, a line or a field's value; an error with the column when it is not JSON."""
    subject = f"field {field!r} is not" if field else "not"
    remedy = 'write a list as ["a", "b"]' if field else "correct or remove the line"
    try:
        value = _DECODER.decode(text)
        _refuse_depth(value, text)
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


def _refuse_depth(value: Any, text: str) -> None:
    """Raise RecursionError where the value is deeper than what is later written, copied and sent may be."""
    if text.count("[") + text.count("{") <= DEPTH_LIMIT:
        return
    level, depth = [value], 0
    while level:
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        level = [inner for inner in level if isinstance(inner, dict | list)]
        depth += 1
        if depth > DEPTH_LIMIT:
            raise RecursionError(f"over {DEPTH_LIMIT} levels")


def as_record(value: Any, place: Place) -> Record:
    """`value` when it is a JSON object, else an error."""
    if not isinstance(value, dict):
        raise place.error(f"must be a JSON object with named fields, not {kind(value)}")
    return value


def read_jsonl(path: Path) -> Iterator[tuple[Place, Record]]:
    """One JSON object a line."""
    for place, text in read_lines(path):
        yield place, as_record(parse_json(text, place), place)


def read_json_array(path: Path) -> Iterator[tuple[Place, Record]]:
    """The objects of one JSON array, as HotpotQA and 2WikiMultihopQA are published; records count from 1."""
    for number, value in enumerate(read_json(path), start=1):
        place = Place(str(path), "record", number)
        yield place, as_record(value, place)


def read_json(path: Path, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The JSON value that a file holds; `pairs` makes the value of an object, in place of a dict."""
    data = read_whole(path).removeprefix(_BOM)
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=pairs)
        _refuse_depth(value, text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_utf8(Place(str(path), "line", line), error.start, data[:2]) from error
    except json.JSONDecodeError as error:
        place = Place(str(path), "line", error.lineno)
        raise place.error(
            f"not JSON ({error.msg} at column {error.colno}): download or write the file again"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path}: not JSON that can be read ({error}): download or write the file again") from error
    return value


def first_character(path: Path) -> str:
    """The first character that is not white space, looked for in the first 4 KiB; empty when there is none."""
    with opened(path) as file:
        return file.read(4096).removeprefix(_BOM).lstrip()[:1].decode(errors="replace")

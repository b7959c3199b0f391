"""Where a record stands in its file, typed access to its fields, and what readers remark on without refusing it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from unicodedata import category

from hopbench.eval.types import Finding, looks_like
from hopbench.retrieval.support.errors import InputError

Record = dict[str, Any]


class Place(NamedTuple):
    """One record's position: `unit` is `line` (text files), `record` (JSON arrays) or `row` (tables); from 1."""

    file: str
    unit: str
    number: int

    def __str__(self) -> str:
        """`corpus.jsonl, line 17`."""
        return f"{self.file}, {self.unit} {self.number}"

    def error(self, problem: str) -> InputError:
        """Make the error to raise for this record."""
        return InputError(f"{self}: {problem}")


Rows = Iterable[tuple[Place, Record]]


def refuse_unknown(
    source: str, noun: str, where: str, remedy: str, unknown: Sequence[tuple[str, Place]], known: Iterable[str] = ()
) -> None:
    """Raise one error for all unknown values, if there are any: how many, the first three, their places, what is alike.

    The message reads "3 gold ids are not in the corpus: …" for the noun `gold id` and where `in the corpus`.
    """
    first: dict[str, Place] = {}
    for value, place in unknown:
        first.setdefault(value, place)
    if not first:
        return
    named = list(first.items())[:SHOWN]
    alike = looks_like([value for value, _ in named], known)
    shown = ", ".join(
        f"{value!r} ({place.unit} {place.number}{'; ' + alike[value] if value in alike else ''})"
        for value, place in named
    )
    more = f", and {len(first) - SHOWN:,} more" if len(first) > SHOWN else ""
    subject = f"{noun} is" if len(first) == 1 else f"{noun}s are"
    raise InputError(f"{source}: {len(first):,} {subject} not {where}: {shown}{more}. {remedy}")


SHOWN = 3
ID_LIMIT = 2000  # characters: a long web address
TEXT_LIMIT = 1024 * 1024  # bytes of UTF-8; a passage of this size is hundreds of times what an embedder reads


def kind(value: object) -> str:
    """Describe a JSON value in plain words: `the number 5`, `null`, `a list`."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value}"
    names: dict[type, str] = {list: "a list", tuple: "a list", dict: "an object", str: "a string"}
    return names.get(type(value), f"a {type(value).__name__}")


def text_value(place: Place, field: str, value: object, *, optional: bool = False) -> str:
    """Return `value` if it is a string that UTF-8 can hold, of at most `TEXT_LIMIT` bytes; null is "" if `optional`."""
    if value is None and optional:
        return ""
    if not isinstance(value, str):
        raise place.error(f"field {field!r} must be a string, not {kind(value)}")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError as error:
        bad = value[error.start]
        raise place.error(
            f"field {field!r} holds the lone surrogate {bad!a}, which is not a character: remove it"
        ) from error
    if size > TEXT_LIMIT:
        raise place.error(
            f"field {field!r} is {size:,} bytes long, over the limit of {TEXT_LIMIT:,} (1 MiB): "
            "split the passage into several with ids of their own"
        )
    return value


def id_value(place: Place, field: str, value: object) -> str:
    """Return an id as a string; whole numbers, also `2.0` as columns with gaps hold them, as their digits."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        return str(int(value))
    text = text_value(place, field, value)
    if not text.strip():
        raise place.error(f"field {field!r} is empty: every record needs an id of its own")
    if not text.isprintable() and any(category(mark) == "Cc" for mark in text):
        raise place.error(
            f"field {field!r} is {text[:80]!r}: an id with a tab, line break or other control character cannot be "
            "written in a qrels file: give it another"
        )
    if len(text) > ID_LIMIT:
        raise place.error(
            f"field {field!r} has {len(text):,} characters, over the limit of {ID_LIMIT:,}: shorten the id"
        )
    return text


def required(record: Record, place: Place, field: str) -> Any:
    """Return the field's value; if it is missing, the error lists the fields present."""
    if field not in record:
        raise place.error(f"field {field!r} is missing (fields present: {', '.join(map(str, record)) or 'none'})")
    return record[field]


def record_id(record: Record, place: Place) -> str:
    """Return the record's `_id` (BEIR), or its `id` where only that is given (Hub sets, MuSiQue)."""
    field = "id" if record.get("_id") is None and "id" in record else "_id"
    return id_value(place, field, required(record, place, field))


def refuse_repeated(what: str, value: str, place: Place, seen: dict[str, Place]) -> None:
    """Add the id of a passage or question to `seen`; raise an error that names both places if it is there already."""
    first = seen.setdefault(value, place)
    if first is not place:
        where = f"{first.unit} {first.number}" if first.file == place.file else first
        raise place.error(
            f"duplicate {what} '_id' {value!r}, first used in {where}: remove one of the two or give it an id of its "
            "own"
        )


def list_field(record: Record, place: Place, field: str) -> list[Any]:
    """Return a required list."""
    value = required(record, place, field)
    if not isinstance(value, list | tuple):
        raise place.error(f"field {field!r} must be a list, not {kind(value)}")
    return list(value)


def content_id(prefix: str, *parts: str) -> str:
    """Derive a stable id from the content alone: the same text gets the same id in any file and any order."""
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
    return f"{prefix}{digest[:16]}"


_FOUND: ContextVar[list[Finding] | None] = ContextVar("found", default=None)


@contextmanager
def collected() -> Iterator[list[Finding]]:
    """Open the list to which `remark` adds."""
    found: list[Finding] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def remark(what: str, examples: Sequence[str], remedy: str) -> None:
    """Add the finding that `what` is true of the examples, if there are any; the first three are shown."""
    found = _FOUND.get()
    if examples and found is not None:
        found.append(Finding(what, len(examples), tuple(examples[:SHOWN]), remedy))

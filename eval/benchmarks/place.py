"""Where in a file a record stands, so that every message can name file, line and field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

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
        """The error to raise for this record."""
        return InputError(f"{self}: {problem}")


Rows = Iterable[tuple[Place, Record]]


def refuse_unknown(source: str, noun: str, where: str, remedy: str, found: Sequence[tuple[str, Place]]) -> None:
    """Raise one error for all references that lead nowhere: how many, the first three, and where they stand.

    The message reads "3 gold ids are not in the corpus: …" for the noun `gold id` and where `in the corpus`. `found`
    holds the unknown value with the place that named it; nothing happens when it is empty. The count is of distinct
    values, since one missing passage is often named by many lines.
    """
    first: dict[str, Place] = {}
    for value, place in found:
        first.setdefault(value, place)
    if not first:
        return
    shown = ", ".join(f"{value!r} ({place.unit} {place.number})" for value, place in list(first.items())[:3])
    more = f", and {len(first) - 3:,} more" if len(first) > 3 else ""
    subject = f"{noun} is" if len(first) == 1 else f"{noun}s are"
    raise InputError(f"{source}: {len(first):,} {subject} not {where}: {shown}{more}. {remedy}")

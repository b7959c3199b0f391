"""From records to passages, each with the file and page it comes from.

Of a corpus row only `_id`, `title`, `text`, `links`, `page_number`, `document_id` and `document_name` are read:
whatever else a corpus says about its passages may give away a question's gold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    Rows,
    kind,
    optional_text,
    record_id,
    required,
    text_value,
    whole,
)
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import SOURCE_FIELDS, UNKNOWN_SOURCE, Link, Passage, Source


class Unique:
    """Remembers where each id was first used and refuses its second use."""

    def __init__(self, what: str) -> None:
        """`what` is the kind of record, as messages call it: `passage` or `question`."""
        self._what = what
        self._first: dict[str, Place] = {}

    def add(self, value: str, place: Place) -> None:
        """Take note of `value`, or raise an error that names both places."""
        first = self._first.setdefault(value, place)
        if first is not place:
            raise place.error(
                f"duplicate {self._what} '_id' {value!r}, first used in {first.within(place.file)}: "
                "remove one of the two or give it an id of its own"
            )


def read_passage(record: Record, place: Place) -> Passage:
    """One passage from `_id`, `title` (may be absent), `text` (may be empty or null), and its source."""
    title = optional_text(place, "title", record.get("title"))
    text = optional_text(place, "text", required(record, place, "text"))
    if not title.strip():
        title, text = "", text if text.strip() else ""
    return Passage(record_id(record, place), title, text, read_source(record, place), read_links(record, place))


def read_passages(source: str, rows: Rows) -> tuple[Passage, ...]:
    """All passages of a corpus, in file order, each `_id` once; an empty corpus is refused."""
    return tuple(checked_passages(source, rows))


def checked_passages(source: str, rows: Rows) -> Iterator[Passage]:
    """`read_passages`, one after another."""
    unique, some = Unique("passage"), False
    for place, record in rows:
        passage = read_passage(record, place)
        unique.add(passage.id, place)
        some = True
        yield passage
    if not some:
        raise InputError(f"{source}: the corpus is empty: it must hold at least one passage (_id, title, text)")


def read_links(record: Record, place: Place) -> tuple[Link, ...]:
    """The links of a row, `[{"text": …, "target": …}]`; a field `links` of another form is not ours, and not read.

    Raises
    ------
    InputError
        For a link whose text or target is no string.
    """
    given = record.get("links")
    if isinstance(given, str):  # as in a table's cell
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(given, list | tuple) or not all(isinstance(one, dict) and "target" in one for one in given):
        return ()
    return tuple(
        Link(optional_text(place, "links: text", one.get("text")), text_value(place, "links: target", one["target"]))
        for one in given
    )


LONGEST = 200  # characters
_SOURCE = frozenset(SOURCE_FIELDS)


def read_source(record: Record, place: Place) -> Source:
    """The source that a row gives, beside its text or in its `metadata`, which overrules; null and "" say nothing.

    Raises
    ------
    InputError
        For a value that is neither text nor a whole number, or is longer than 200 characters.
    """
    beside = record.get("metadata")
    metadata = beside if isinstance(beside, dict) else {}
    if _SOURCE.isdisjoint(record) and _SOURCE.isdisjoint(metadata):  # most corpora: a fifth of their reading
        return UNKNOWN_SOURCE
    given = {name: metadata.get(name, record.get(name)) for name in SOURCE_FIELDS}
    if all(value in (None, "") for value in given.values()):
        return UNKNOWN_SOURCE
    page, document_id, document_name = (_value(place, name, value) for name, value in given.items())
    digits = page.removesuffix(".0")  # as pandas writes whole numbers of a column with gaps
    number = int(digits) if digits.isascii() and digits.isdigit() else page or None
    return Source(number, document_id, document_name)


def _value(place: Place, name: str, value: object) -> str:
    if value is None:
        return ""
    value = whole(value)  # a table's reader gives whole numbers beside gaps as floats
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise place.error(f"field {name!r} must be text or a whole number, not {kind(value)}: correct or remove it")
    text = text_value(place, name, str(value)).strip()
    if len(text) > LONGEST:
        raise place.error(f"field {name!r} has {len(text)} characters, the limit is {LONGEST}: shorten or remove it")
    return text

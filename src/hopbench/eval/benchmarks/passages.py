"""From records to passages, each with the file and page it comes from.

Of a corpus row only `_id`, `title`, `text`, `links`, `page_number`, `document_id` and `document_name` are read:
whatever else a corpus says about its passages may give away a question's gold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

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
from hopbench.eval.benchmarks.records import layout_ending, read_records
from hopbench.retrieval.corpus import MappedPassages, write_passages
from hopbench.retrieval.support.cached_files import kept
from hopbench.retrieval.support.errors import InputError, exhausted
from hopbench.retrieval.support.input_files import unreadable
from hopbench.retrieval.types import SOURCE_FIELDS, UNKNOWN_SOURCE, Link, Passage, Source


class Unique:
    """Track where each id was first used and refuse a second use."""

    def __init__(self, what: str) -> None:
        """Set the kind of record for messages: `passage` or `question`."""
        self._what = what
        self._first: dict[str, Place] = {}

    def add(self, value: str, place: Place) -> None:
        """Record `value`, or raise an error that names both places."""
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
    """Read all passages of a corpus in file order; refuse duplicate ids and an empty corpus."""
    return tuple(checked_passages(source, rows))


def checked_passages(source: str, rows: Rows) -> Iterator[Passage]:
    """Yield checked passages one at a time (see `read_passages`)."""
    unique, some = Unique("passage"), False
    for place, record in rows:
        passage = read_passage(record, place)
        unique.add(passage.id, place)
        some = True
        yield passage
    if not some:
        raise InputError(f"{source}: the corpus is empty: it must hold at least one passage (_id, title, text)")


def read_links(record: Record, place: Place) -> tuple[Link, ...]:
    """The links of a row, `[{"text": …, "target": …}]`; a `links` field of another form is ignored.

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


SOURCE_LIMIT = 200  # characters
_SOURCE = frozenset(SOURCE_FIELDS)


def read_source(record: Record, place: Place) -> Source:
    """Read a row's source from its own fields or its `metadata`, which takes precedence; ignore null and "".

    Raises
    ------
    InputError
        For a value that is neither text nor a whole number, or is longer than 200 characters.
    """
    given_metadata = record.get("metadata")
    metadata = given_metadata if isinstance(given_metadata, dict) else {}
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
    value = whole(value)  # pandas stores whole numbers as floats in columns with gaps
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise place.error(f"field {name!r} must be text or a whole number, not {kind(value)}: correct or remove it")
    text = text_value(place, name, str(value)).strip()
    if len(text) > SOURCE_LIMIT:
        raise place.error(
            f"field {name!r} has {len(text)} characters, the limit is {SOURCE_LIMIT}: shorten or remove it"
        )
    return text


FORMAT = "passages-2"  # bump when what is read or refused changes: files are then read again


def mapped_passages(files: Sequence[Path], folder: Path) -> MappedPassages:
    """Return passages from cached columns in `folder`; read the files and cache them on first use.

    Files and columns are read whole for their checksums: seconds per gigabyte, a tenth of reading the passages.

    Raises InputError as `read_passages`, for files that are written while they are read, and for a folder that cannot
    be written; another error of the project's where the disk is full.
    """
    source = str(files[0] if len(files) == 1 else files[0].parent)
    name = _content_digest(files)

    def write(place: Path) -> None:
        write_passages(checked_passages(source, chain.from_iterable(map(read_records, files))), place)
        if _content_digest(files) != name:
            raise InputError(f"{source}: was written to while it was read: run the command again when it is complete")

    try:
        return kept(folder / name, FORMAT, write, MappedPassages, content=True)
    except OSError as error:  # the folder's: errors of the corpus come from its readers as InputError
        if (lacking := exhausted(error, folder)) is not None:
            raise lacking from error
        raise InputError(f"cannot write {folder}: {error}. Set HOPBENCH_HOME to another folder") from error


def _content_digest(files: Sequence[Path]) -> str:
    """SHA-256 of the files and of their endings, by which their layout is known."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(layout_ending(file).encode())
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise unreadable(str(file), error) from error
    return digest.hexdigest()

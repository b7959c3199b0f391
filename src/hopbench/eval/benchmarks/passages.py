"""Read passages from records, each with the file and page it comes from.

Of a corpus row only `_id`, `title`, `text`, `links`, `page_number`, `document_id` and `document_name` are read:
whatever else a corpus says about its passages may give away a question's gold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    Rows,
    kind,
    record_id,
    refuse_repeated,
    required,
    text_value,
)
from hopbench.eval.benchmarks.records import layout_ending, rows_of
from hopbench.retrieval.corpus import MappedPassages, write_passages
from hopbench.retrieval.support.cached_files import kept
from hopbench.retrieval.support.errors import InputError, exhausted
from hopbench.retrieval.support.input_files import unreadable
from hopbench.retrieval.types import SOURCE_FIELDS, UNKNOWN_SOURCE, Link, Passage, Source

SOURCE_LIMIT = 200  # characters
FORMAT = "passages-2"  # bump when what is read or refused changes: files are then read again


def read_passage(record: Record, place: Place) -> Passage:
    """Read one passage from `_id`, `title` (may be absent), `text` (may be empty or null), its source and links."""
    title = text_value(place, "title", record.get("title"), optional=True)
    text = text_value(place, "text", required(record, place, "text"), optional=True)
    if not title.strip():
        title, text = "", text if text.strip() else ""
    links = read_links(record, place) if "links" in record else ()
    return Passage(record_id(record, place), title, text, read_source(record, place), links)


def read_passages(source: str, rows: Rows) -> Iterator[Passage]:
    """Yield the passages of a corpus in file order; refuse duplicate ids and an empty corpus."""
    seen: dict[str, Place] = {}
    for place, record in rows:
        passage = read_passage(record, place)
        refuse_repeated("passage", passage.id, place, seen)
        yield passage
    if not seen:
        raise InputError(f"{source}: the corpus is empty: it must hold at least one passage (_id, title, text)")


def read_links(record: Record, place: Place) -> tuple[Link, ...]:
    """Read a row's links, `[{"text": …, "target": …}]`; a field of another form is ignored."""
    given = record.get("links")
    if isinstance(given, str):  # as in a table's cell
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(given, list | tuple) or not all(isinstance(one, dict) and "target" in one for one in given):
        return ()
    return tuple(
        Link(
            text_value(place, "links: text", one.get("text"), optional=True),
            text_value(place, "links: target", one["target"]),
        )
        for one in given
    )


def read_source(record: Record, place: Place) -> Source:
    """Read a row's source from its own fields or its `metadata`, which takes precedence; ignore null and ""."""
    metadata = record.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    values = [inner.get(name, record.get(name)) for name in SOURCE_FIELDS]
    if not any(value not in (None, "") for value in values):
        return UNKNOWN_SOURCE
    texts = []
    for name, given in zip(SOURCE_FIELDS, values, strict=True):
        # pandas stores whole numbers as floats in columns with gaps.
        value = int(given) if isinstance(given, float) and given.is_integer() else given
        if isinstance(value, bool) or not isinstance(value, int | str | None):
            raise place.error(f"field {name!r} must be text or a whole number, not {kind(value)}: correct or remove it")
        text = "" if value is None else text_value(place, name, str(value)).strip()
        if len(text) > SOURCE_LIMIT:
            raise place.error(
                f"field {name!r} has {len(text)} characters, the limit is {SOURCE_LIMIT}: shorten or remove it"
            )
        texts.append(text)
    page, document_id, document_name = texts
    digits = page.removesuffix(".0")  # as pandas writes whole numbers of a column with gaps
    number = int(digits) if digits.isascii() and digits.isdigit() else page or None
    return Source(number, document_id, document_name)


def corpus_passages(source: str, files: Sequence[Path], mapped: Path | None) -> Sequence[Passage]:
    """Read the passages of files; with `mapped` they are columns cached there, made on first use.

    Files and columns are read whole for their checksums: seconds per gigabyte, a tenth of reading the passages.
    """
    if mapped is None:
        return tuple(read_passages(source, rows_of(files)))
    name = _content_digest(files)

    def write(place: Path) -> None:
        write_passages(read_passages(source, rows_of(files)), place)
        if _content_digest(files) != name:
            raise InputError(f"{source}: was written to while it was read: run the command again when it is complete")

    try:
        return kept(mapped / name, FORMAT, write, MappedPassages, content=True)
    except OSError as error:  # the folder's: errors of the corpus come from its readers as InputError
        if (lacking := exhausted(error, mapped)) is not None:
            raise lacking from error
        raise InputError(f"cannot write {mapped}: {error}. Set HOPBENCH_HOME to another folder") from error


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

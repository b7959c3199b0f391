"""Where in which file a passage stands: `page_number`, `document_id` and `document_name` of a corpus row.

Other fields of a row are not read: what a corpus says about its passages may tell a question's gold.
"""

from __future__ import annotations

from hopbench.eval.benchmarks.fields import kind, text_value
from hopbench.eval.benchmarks.place import Place, Record
from hopbench.retrieval.types import SOURCE_FIELDS, UNKNOWN_SOURCE, Source

LONGEST = 200  # characters


def read_source(record: Record, place: Place) -> Source:
    """The source that a row gives, beside its text or in its `metadata`, which overrules; null and "" say nothing.

    Raises
    ------
    InputError
        For a value that is neither text nor a whole number, or is longer than 200 characters.
    """
    beside = record.get("metadata")
    metadata = beside if isinstance(beside, dict) else {}
    given = {name: metadata.get(name, record.get(name)) for name in SOURCE_FIELDS}
    if all(value in (None, "") for value in given.values()):
        return UNKNOWN_SOURCE
    page, document_id, document_name = (_value(place, name, value) for name, value in given.items())
    number = int(page) if page.isascii() and page.isdigit() else page or None
    return Source(number, document_id, document_name)


def _value(place: Place, name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():  # as a table's reader gives whole numbers beside gaps
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise place.error(f"field {name!r} must be text or a whole number, not {kind(value)}: correct or remove it")
    text = text_value(place, name, str(value)).strip()
    if len(text) > LONGEST:
        raise place.error(f"field {name!r} has {len(text)} characters, the limit is {LONGEST}: shorten or remove it")
    return text

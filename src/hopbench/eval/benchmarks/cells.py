"""Values of tables: a table's cell holds a list as JSON text, and numbers beside gaps as floats."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import parse_json
from hopbench.retrieval.support.errors import InputError

FIELDS = frozenset(
    """_id id text title question answer answer_aliases type gold metadata page_number document_id document_name
    context supporting_facts paragraphs query-id corpus-id score""".split()
)
"""The columns of tables that are read."""
_NESTED = (
    *("answer", "answer_aliases", "gold", "metadata"),
    *("context", "supporting_facts", "evidences", "paragraphs", "question_decomposition"),
)
_BEGINNINGS = ("[", "{")


def refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Raise InputError where a column that is read stands twice, as only one of the two could be read."""
    for name in FIELDS:
        if names.count(name) > 1:
            raise InputError(f"{path}: has the column {name!r} {names.count(name)} times: remove or rename all but one")


def with_nested_values(record: Record, place: Place) -> Record:
    """The record with lists and objects in place of their JSON text, and without fields that are empty cells.

    An answer that only begins like a list, as "[sic]", stays as it is written.
    """
    for name in _NESTED:
        value = record.get(name, "")
        if value == "":
            record.pop(name, None)
        elif isinstance(value, str) and value.lstrip()[:1] in _BEGINNINGS:
            record[name] = _nested(name, value.strip(), place)
    return record


def _nested(name: str, text: str, place: Place) -> Any:
    if (listed := _python_list(text)) is not None:
        return listed
    if name == "answer" and not (text[:2] in {'["', "['"} and text.endswith("]")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return value if isinstance(value, list) else text
    return parse_json(text, place, name)


def _python_list(text: str) -> list[Any] | None:
    """The list of which this is Python's own text, as pandas writes lists into a CSV file; None where it is none."""
    if not text.startswith("['"):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and repr(value) == text else None

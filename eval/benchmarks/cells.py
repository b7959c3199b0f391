"""Values of tables: a table's cell holds a list as JSON text, and numbers beside gaps as floats."""

from __future__ import annotations

import ast
import json
from typing import Any

from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import parse_json

_NESTED = (
    *("answer", "answer_aliases", "gold", "metadata"),
    *("context", "supporting_facts", "evidences", "paragraphs", "question_decomposition"),
)
_BEGINNINGS = ("[", "{")


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

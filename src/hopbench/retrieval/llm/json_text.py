"""Finds the JSON of a requested form in what a model wrote around it: fences, words, lists, more fields than wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)  # models write line ends into texts
_START = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


def parsed(text: str) -> Any:
    """The JSON that a text is, fenced or not. Raises ValueError."""
    fenced = _FENCE.fullmatch(text)
    return _DECODER.decode(fenced[1] if fenced else text)


def find_value(text: str, schema: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The last value in a text that has the form of the schema; without one, the problem of the last value."""
    problem: str | None = "no JSON"
    for source in (text, _TRAILING_COMMA.sub(lambda match: match[1] or "", text)):
        for found in reversed(list(_values(source))):
            for value in (found, *(found if isinstance(found, list) and len(found) == 1 else ())):
                known = _known_fields(value, schema, schema.get("$defs", {}))
                error = form_problem(known, schema)
                if error is None:
                    return known, None
                problem = error if problem == "no JSON" else problem
    return None, problem


def problem_of(text: str) -> tuple[bool, str] | None:
    """Whether the JSON in a text ends too early, and what is wrong with it; None where it can be parsed."""
    start = _START.search(text)
    try:
        _DECODER.raw_decode(text, start.start() if start else 0)
    except json.JSONDecodeError as error:
        early = start is not None and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"))
        return early, f"no JSON ({error.msg} at {error.pos})"
    except RecursionError:
        return False, "no JSON (it is nested too deeply)"
    return None


def form_problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Where and how a value differs from the schema; None where it has its form."""
    import jsonschema

    error = next(jsonschema.Draft202012Validator(schema).iter_errors(value), None)
    return None if error is None else f"{error.json_path}: {error.message[:200]}"


def _values(text: str) -> Iterator[Any]:
    """The outermost objects and lists in a text, in their order."""
    try:
        whole = _DECODER.decode(text.strip())
        text = whole if isinstance(whole, str) else text  # JSON that was written as a JSON text once more
    except (ValueError, RecursionError):
        pass
    at = 0
    while start := _START.search(text, at):
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except ValueError:
            at = start.end()
        except RecursionError:
            return
        else:
            yield value


def _known_fields(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """The value without the fields that a closed object of the schema does not have."""
    if "$ref" in schema:
        return _known_fields(value, definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    if isinstance(value, list):
        return [_known_fields(one, schema.get("items") or {}, definitions) for one in value]
    fields = schema.get("properties")
    if not isinstance(value, dict) or fields is None:
        return value
    closed = schema.get("additionalProperties") is False
    return {
        name: _known_fields(part, fields.get(name, {}), definitions)
        for name, part in value.items()
        if name in fields or not closed
    }

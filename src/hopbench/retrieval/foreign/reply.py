"""What a foreign retriever returned, checked: a bad ranking fails its question, a bad reply all that were asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from hopbench.retrieval.foreign.answer import Answer, shown
from hopbench.retrieval.support.collector import collector_paused

_VERSION_CHARACTERS = 200
_EXCERPT = 80


class ReplyError(Exception):
    """Why a request got no usable reply. `lost` says that none arrived at all, `again` that asking again may help."""

    def __init__(self, reason: str, *, lost: bool = False, again: bool = False) -> None:
        super().__init__(reason)
        self.lost = lost
        self.again = again


@dataclass(frozen=True, slots=True)
class Reply:
    """A ranking for each question asked, and the version that the endpoint states (empty: none)."""

    answers: Sequence[Answer]
    version: str = ""


def read_reply(content: bytes, content_type: str, questions: int, k: int) -> Reply:
    """`{"results": [[id, …], …]}`, with an optional `"version"`, as one answer per question.

    Raises
    ------
    ReplyError
        For what is not JSON, has no list `results`, or has not as many results as there were questions.
    """
    record = _object(content, content_type)
    if "results" not in record:
        present = ", ".join(shown(name) for name in list(record)[:5]) or "none"
        raise ReplyError(f"the reply has no field 'results' (fields present: {present})")
    results = record["results"]
    if not isinstance(results, list):
        raise ReplyError(f"'results' is {_kind(results)}, not a list")
    if len(results) != questions:
        raise ReplyError(f"the reply has {len(results)} results for {questions} question{'s' if questions > 1 else ''}")
    return Reply([ranking_of(one, k) for one in results], _version(record.get("version")))


def ranking_of(value: object, k: int) -> Answer:
    """One ranking: at most `k` passage ids, texts or whole numbers; what is anything else is an answer's failure."""
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        return Answer(failure=f"the ranking is {_kind(value)}, not a list of passage ids")
    passages: list[str] = []
    for one in value:
        if len(passages) == k:
            return Answer(failure=f"more than the {k} passages that were asked for are returned")
        if isinstance(one, bool) or not isinstance(one, str | Integral):
            return Answer(failure=f"a passage id is {_kind(one)}, not a text")
        passages.append(str(one))
    return Answer(passages)


def _object(content: bytes, content_type: str) -> dict[str, Any]:
    try:
        with collector_paused():  # finalizers that it calls fail where the reply is nested as deep as Python goes
            value = json.loads(content)
    except (ValueError, RecursionError):  # nested without end, or a number of a million digits
        begins = content[:_EXCERPT].decode(errors="replace").strip()
        of = f" but {shown(content_type)}" if content_type and "json" not in content_type.lower() else ""
        what = f"the reply is not JSON{of}; it begins {shown(begins)}" if begins else "the reply is empty"
        raise ReplyError(what) from None
    if not isinstance(value, dict):
        raise ReplyError(f"the reply is {_kind(value)}, not an object with the field 'results'")
    return value


def _version(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else ""
    if not text or len(text) > _VERSION_CHARACTERS or not text.isprintable():
        raise ReplyError(f"'version' is {_kind(value)}, not a printable text of up to {_VERSION_CHARACTERS} characters")
    return text


def _kind(value: object) -> str:
    """A value in plain words: `the number 5`, `null`, `a list`."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return "a large number" if isinstance(value, int) and abs(value) >= 1e15 else f"the number {value:g}"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    names: dict[type, str] = {list: "a list", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"a {type(value).__name__}")

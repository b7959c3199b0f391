"""A foreign retriever's answer to one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_LONGEST = 80  # characters of a quoted text


@dataclass(frozen=True, slots=True)
class Answer:
    """A retriever's answer to one question: passage ids, best first, or the reason why there are none.

    `scores` are beside `passages`, or empty; 1/rank stands in for them.
    """

    passages: Sequence[str] = ()
    scores: Sequence[float] = ()
    failure: str | None = None


def shown(text: str) -> str:
    """A text in a message: quoted, control characters as escapes, cut where it is long."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")

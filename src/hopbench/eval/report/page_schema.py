"""The JSON that the report's page is filled with: the index of questions, and the details unpacked on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict


class QuestionLine(TypedDict):
    """A question in the page's list: gold `titles`, whether each label `found` all, and where its details are.

    `at` is (batch, place in it), None where they were left out.
    """

    id: str
    text: str
    type: str
    answer: str | None
    titles: Sequence[str]
    found: Sequence[int | None]
    at: tuple[int, int] | None


class QuestionIndex(TypedDict):
    """What the page's list and filters need."""

    labels: Sequence[str]
    baseline: str
    metric: str
    questions: Sequence[QuestionLine]


class Context(TypedDict):
    """The context that a reader got: its tokens, those of the graph `block` before the passages, and the passages."""

    tokens: int
    block_tokens: int
    block: str
    passages: Sequence[int]


class Notes(TypedDict, total=False):
    """What the strategy noted, as (name, words), and the context; empty where the run has no traces."""

    trace: Sequence[Sequence[str]]
    context: Context


class LabelDetails(Notes):
    """A label's answer to one question; the numbers but `ranks` and `hits` are missing where it has no row.

    In brief details a hit is its passage's number alone. `set` says which of several gold sets counts.
    """

    failure: str | None
    ms: NotRequired[float | None]
    listed: NotRequired[int]
    ranks: Sequence[int | None]
    set: NotRequired[str]
    hits: Sequence[list[Any] | int]


class QuestionDetails(TypedDict):
    """The details of a question: gold passages by number, and an entry per label in the index's order.

    `sets` holds the gold of each set, where there are several.
    """

    aliases: Sequence[str]
    gold: Sequence[int]
    sets: NotRequired[Sequence[Sequence[int]]]
    labels: Sequence[LabelDetails]

"""The parts of results.json about answers and judgements; `hopbench.eval.runs.schema` has the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from hopbench.retrieval.llm.adaptation import Adapted
from hopbench.retrieval.llm.endpoint import Asked


class AnsweringCosts(TypedDict):
    """The cost of a label's answers."""

    failures: int
    calls: int
    tokens_in: int
    tokens_out: int


class JudgedMetric(TypedDict):
    """One judged metric of a label.

    `coverage` is the share of questions with a score, `judge_sd` the pooled standard deviation of one question's
    repeats, `failures` are counts by reason.
    """

    mean: float | None
    questions: int
    coverage: float
    judge_sd: float | None
    failures: Mapping[str, int]
    calls: int
    tokens_in: int
    tokens_out: int
    judge_seconds: float


class ModelCosts(TypedDict, total=False):
    """The cost of a label's answers and judgements; empty without a language model."""

    answering: AnsweringCosts
    judged: Mapping[str, JudgedMetric]
    judge_calls: int
    judge_tokens: int


class ModelEntry(Asked, Adapted):
    """How a model was asked, where that was set, and what its endpoint refused of the requests."""


class ReaderEntry(ModelEntry):
    """Who answered: the model and the version of the prompt."""

    llm: str
    prompt: str


class JudgeEntry(ModelEntry):
    """Who judged, with the version of each metric's prompt, and which labels."""

    llm: str
    profile: str
    versions: Mapping[str, str]
    repeats: int
    labels: Sequence[str]


class ModelEntries(TypedDict, total=False):
    """The language models that read and judged; empty without any."""

    reader: ReaderEntry
    judge: JudgeEntry

"""The reader: one prompt for every strategy, over the context that the shared budget allows.

The closed-book row sends the same prompt without any context: what a model knew before is not credited to retrieval.
At the end stand the parts of results.json about answers and judgements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from hopbench.eval.metrics.built_in import answer_f1, exact_match
from hopbench.eval.types import Benchmark, PassageRanking
from hopbench.retrieval.llm.adaptation import Adapted
from hopbench.retrieval.llm.endpoint import Asked, wire_schema

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.retrieval.llm import LLM, Call


CLOSED_BOOK = "closed_book"
"""The label of the row without retrieval."""

VERSION = "reader 1"
MAX_TOKENS = 256
OVER_BUDGET = "budget reached: "  # how `ask` marks a reply that it did not ask for
SYSTEM = (
    "You answer questions that need facts from one or more passages. Use the context where there is one, else what you "
    "know; if neither tells, give your best guess. answer: only the answer itself, a name, date, number or short "
    "phrase; yes or no for a yes/no question. statement: the answer as one full sentence that repeats what was asked."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "maxLength": 120},
        "statement": {"type": "string", "maxLength": 400},  # together they end before MAX_TOKENS
    },
    "required": ["answer", "statement"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The reader's reply: the bare `answer` for EM and F1, the `statement` for judges; or a `failure`. And its cost."""

    answer: str = ""
    statement: str = ""
    failure: str | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def messages(question: str, context: str) -> list[dict[str, str]]:
    """The reader's prompt."""
    shown = f"Context:\n{context}\n\n" if context else "Context: none\n\n"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{shown}Question: {question}"}]


def reader_call(llm: LLM, sample: str, question: str, context: str) -> Call:
    """The one call that answers a question."""
    from hopbench.retrieval.llm import Call

    schema = wire_schema(SCHEMA, llm.endpoint.base_url)
    return Call("answer", messages(question, context), schema, max_tokens=MAX_TOKENS, sample=sample, version=VERSION)


def answer_all(llm: LLM, benchmark: Benchmark, rankings: Mapping[str, PassageRanking]) -> dict[str, Answer]:
    """Answer every question; by question id. A question without a ranking gets a failure.

    Raises BudgetReached at the cost limit; answers so far are cached, so that the next run does not pay for them again.
    """
    from hopbench.retrieval.llm import BudgetReached, ask

    readable = [question for question in benchmark.questions if rankings[question.id].failure is None]
    calls = [reader_call(llm, q.id, q.text, rankings[q.id].context) for q in readable]
    replies = ask(llm, calls)
    if reached := next((r.failure for r in replies if r.failure and r.failure.startswith(OVER_BUDGET)), None):
        raise BudgetReached(reached.removeprefix(OVER_BUDGET))
    answers = {}
    for q, reply in zip(readable, replies, strict=True):
        if reply.failure is not None:
            answers[q.id] = Answer(failure=reply.failure, calls=1)
        else:
            texts = reply.value["answer"], reply.value["statement"]
            answers[q.id] = Answer(*texts, None, 1, reply.tokens_in, reply.tokens_out)
    failed = {id: ranking.failure for id, ranking in rankings.items() if ranking.failure is not None}
    return answers | {id: Answer(failure=f"no ranking: {reason}") for id, reason in failed.items()}


def closed_book(benchmark: Benchmark) -> dict[str, PassageRanking]:
    """Empty rankings: the closed-book row is answered without any context."""
    return {question.id: PassageRanking(question.id) for question in benchmark.questions}


def answer_columns(benchmark: Benchmark, answers: Mapping[str, Answer]) -> pd.DataFrame:
    """`answer`, `answer_failure`, `answer_em` and `answer_f1` of every question (NaN without answer or gold)."""
    import pandas as pd

    rows: list[tuple[str | None, str | None, float, float]] = []
    for question in benchmark.questions:
        gold, answer = question.answers, answers[question.id]
        if answer.failure is not None:
            rows.append((None, answer.failure, math.nan, math.nan))
        elif not gold:
            rows.append((answer.answer, None, math.nan, math.nan))
        else:
            rows.append((answer.answer, None, exact_match(answer.answer, gold), answer_f1(answer.answer, gold)))
    index = pd.Index([question.id for question in benchmark.questions], name="question_id", dtype=object)
    kinds = {"answer": object, "answer_failure": object, "answer_em": float, "answer_f1": float}
    return pd.DataFrame(rows, index, list(kinds), dtype=object).astype(kinds)


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

    answering: Mapping[str, int]
    judged: Mapping[str, JudgedMetric]
    judge_calls: int
    judge_tokens: int


class ReaderEntry(Asked, Adapted):
    """Who answered: the model and the version of the prompt."""

    llm: str
    prompt: str


class JudgeEntry(Asked, Adapted):
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

"""A judge's inputs for one question, the four of RAGAS's metrics, and which metric needs which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hopbench.eval.answering.answers import Answer
from hopbench.eval.types import BenchmarkQuestion, PassageRanking

Input = Literal["question", "contexts", "reference", "response"]

INPUTS: Mapping[str, tuple[Input, ...]] = {
    "context_precision": ("question", "contexts", "reference"),
    "context_recall": ("question", "contexts", "reference"),
    "context_entity_recall": ("contexts", "reference"),
    "faithfulness": ("question", "contexts", "response"),
    "answer_relevancy": ("question", "response"),
    "factual_correctness": ("reference", "response"),
    "answer_correctness": ("question", "reference", "response"),
    "noise_sensitivity": ("question", "contexts", "reference", "response"),
}
"""Judged metric → the inputs that decide its score."""

EMBEDDING = frozenset({"answer_relevancy", "answer_correctness"})
"""The metrics that also embed texts, by the run's embedder."""

SENTENCE_WORDS = 8  # a gold answer of more words is a statement by itself


@dataclass(frozen=True, slots=True)
class Sample:
    """One question as a judge sees it; `contexts` are the parts that the reader read, `response` its answer."""

    question_id: str
    question: str
    contexts: tuple[str, ...] = ()
    reference: str | None = None
    response: str | None = None

    def inputs(self, metric: str) -> dict[str, str | tuple[str, ...] | None]:
        """The inputs of a metric by name."""
        return {name: getattr(self, name) for name in INPUTS[metric]}

    def missing(self, metric: str) -> Input | None:
        """The first input that the metric needs and the sample lacks."""
        return next((name for name in INPUTS[metric] if not getattr(self, name)), None)


def make_sample(question: BenchmarkQuestion, ranking: PassageRanking, answer: Answer | None) -> Sample:
    """The sample of a strategy's ranking and of what the reader made of it."""
    response = None if answer is None or answer.failure is not None else answer.statement
    return Sample(question.id, question.text, ranking.context_parts, reference(question), response)


def reference(question: BenchmarkQuestion) -> str | None:
    """The gold answer as RAGAS needs it: a statement.

    Benchmarks give "Paris" or "yes", in which a judge finds no claim; asked and answered in one text, it does:
    "What is the capital of France? Paris." An answer of more than `SENTENCE_WORDS` words stays as it is.
    """
    if not question.answer:
        return None
    if len(question.answer.split()) > SENTENCE_WORDS:
        return question.answer
    return f"{question.text} {question.answer.rstrip('.')}."

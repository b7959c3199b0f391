"""A judge's inputs for one question, which metric needs which, and one structured call to its model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ValidationError

from hopbench.eval.answering.answers import Answer
from hopbench.eval.types import BenchmarkQuestion, PassageRanking
from hopbench.retrieval.llm import LLM, Call, LLMError
from hopbench.retrieval.llm.client import chat_arguments
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.llm.replies import parsed

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


Asker = Callable[[str, type[BaseModel]], Awaitable[BaseModel]]
"""Asks a prompt and returns an instance of the model that was wanted; raises LLMError or BudgetReached."""


@dataclass(frozen=True)
class Limits:
    """Sampling limits of a judge's model; part of every key under which a score is stored.

    `temperature` is RAGAS's; its `max_tokens` of 1,024 would cut long lists of statements with their reasons. `items`
    and `chars` bound the lists and texts of an answer where a prompt's schema does not, so that a weak model ends.
    """

    max_tokens: int = 4096
    temperature: float = 0.01
    items: int = 64
    chars: int = 800


LIMITS = {"full": Limits(), "compact": Limits(max_tokens=2048)}


def model_asker(llm: LLM, limits: Limits) -> Asker:
    """Make an asker of a model; the surrounding `calling` names the purpose of the calls."""

    async def asked(prompt: str, wanted: type[BaseModel]) -> BaseModel:
        schema = wire_schema(wanted.model_json_schema(), llm.endpoint.base_url, limits.items, limits.chars)
        messages = [{"role": "user", "content": prompt}]
        call = Call(wanted.__name__, messages, schema, limits.max_tokens, limits.temperature)
        completion = await llm.create(**chat_arguments(llm.endpoint, call))
        try:
            return wanted.model_validate(parsed(completion.choices[0].message.content or ""))
        except (ValidationError, ValueError) as error:
            raise LLMError("wrong schema", " ".join(str(error).split())[:200]) from error

    return asked

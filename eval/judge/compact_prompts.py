"""The compact profile's prompts: what is read first, the task last, terse structured output.

What several metrics of a sample read (passages, question) stands first and in the same words, so that a server's prefix
cache serves the second metric and all that follow. No examples and no reasons: local models pay for every token.
A change of a prompt or a schema changes its version, and with it every key under which a judgement is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from eval.judge.sample import Input, Sample

Verdict = Literal[0, 1]
MOST_STATEMENTS = 20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Checked(_Strict):
    """A statement of one fact and whether it is supported."""

    statement: str
    supported: Verdict


Checks = Annotated[list[Checked], Field(min_length=1, max_length=MOST_STATEMENTS)]


class Statements(_Strict):
    """The statements of one text."""

    statements: Checks


class Claims(_Strict):
    """The statements of the given answer and of the reference answer, each checked in the other."""

    given: Checks
    reference: Checks


class Question(_Strict):
    """The question that an answer answers."""

    question: str
    noncommittal: Verdict


class Entities(_Strict):
    """Names in a text."""

    entities: Annotated[list[str], Field(max_length=MOST_STATEMENTS)]


class Sourced(_Strict):
    """A statement of the given answer, whether it is right, and the numbers of the passages that support it."""

    statement: str
    correct: Verdict
    passages: Annotated[list[int], Field(max_length=MOST_STATEMENTS)]


class Noise(_Strict):
    """Which passages support the reference answer, and where the given answer's statements come from."""

    useful: Annotated[list[int], Field(max_length=MOST_STATEMENTS)]
    statements: Annotated[list[Sourced], Field(min_length=1, max_length=MOST_STATEMENTS)]


@lru_cache(maxsize=64)
def verdicts(count: int) -> type[BaseModel]:
    """A schema with exactly `count` verdicts."""
    exact = Annotated[list[Verdict], Field(min_length=count, max_length=count)]
    return create_model(f"Useful{count}", __base__=_Strict, useful=(exact, ...))


@dataclass(frozen=True)
class Prompt:
    """A task over some inputs of a sample; `schema` may depend on the number of passages."""

    reads: tuple[Input, ...]
    task: str
    schema: Callable[[int], type[BaseModel]]

    def text(self, sample: Sample) -> str:
        """The prompt for a sample."""
        return "\n\n".join([*(_SHOWN[name](sample) for name in self.reads), f"Task: {self.task}\nAnswer in JSON."])

    def output(self, sample: Sample) -> type[BaseModel]:
        """What the model is to return for a sample."""
        return self.schema(len(sample.contexts))

    @property
    def version(self) -> str:
        """A digest of all that is the same for every sample."""
        parts = [self.reads, self.task, self.schema(1).model_json_schema()]
        return "compact " + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


_SHOWN: dict[Input, Callable[[Sample], str]] = {
    "contexts": lambda s: "Passages:\n" + "\n".join(f"[{n}] {text}" for n, text in enumerate(s.contexts, 1)),
    "question": lambda s: f"Question: {s.question}",
    "reference": lambda s: f"Reference answer: {s.reference}",
    "response": lambda s: f"Given answer: {s.response}",
}

_ONE_FACT = "statements of one fact each, without pronouns"

USEFUL = Prompt(
    ("contexts", "question", "reference"),
    "For each passage in order, was it useful in arriving at the reference answer? 1 if it was, 0 if not.",
    verdicts,
)
RECALL = Prompt(
    ("contexts", "question", "reference"),
    f"Split the reference answer into {_ONE_FACT}. For each, supported is 1 if it can be attributed to the passages, "
    "0 if it cannot.",
    lambda _: Statements,
)
FAITHFUL = Prompt(
    ("contexts", "question", "response"),
    f"Split the given answer into {_ONE_FACT}. For each, supported is 1 if it can be directly inferred from the "
    "passages, 0 if it cannot.",
    lambda _: Statements,
)
CLAIMS = Prompt(
    ("question", "reference", "response"),
    f"Split the given answer and the reference answer into {_ONE_FACT}. For each statement of the given answer, "
    "supported is 1 if the reference answer supports it, else 0. For each statement of the reference answer, supported "
    "is 1 if the given answer says it, else 0.",
    lambda _: Claims,
)
ASKED = Prompt(
    ("response",),
    "Write the question that the given answer answers. noncommittal is 1 if the given answer is evasive or vague "
    '("I don\'t know"), 0 if it has substance.',
    lambda _: Question,
)
ENTITIES = Prompt(
    ("reference",),
    "List the named entities of the reference answer (persons, places, organisations, dates, amounts, other proper "
    "nouns), each once and as it is written.",
    lambda _: Entities,
)
NOISE = Prompt(
    ("contexts", "question", "reference", "response"),
    "useful: the numbers of the passages that support a statement of the reference answer. statements: the given "
    f"answer split into {_ONE_FACT}; for each, correct is 1 if the reference answer supports it, else 0, and passages "
    "are the numbers of the passages from which it can be inferred.",
    lambda _: Noise,
)

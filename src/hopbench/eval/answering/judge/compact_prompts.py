"""The compact profile's prompts: inputs first, the task last, terse structured output.

Inputs that several metrics of a sample share (passages, question) come first and in the same words, so that a server's
prefix cache serves all but the first metric. No examples and no reasons: on local models every token takes time.
A change of a prompt or schema changes its version, and with it the keys of all stored judgements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from hopbench.eval.answering.judge.sample import Input, Sample

Verdict = Literal[0, 1]
Text = Annotated[str, Field(max_length=160)]
LENGTHS = (3, 6, 12, 24)
WORDS_A_STATEMENT = 5


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Checked(_Strict):
    """A statement of one fact and whether it is supported."""

    statement: Text
    supported: Verdict


class Question(_Strict):
    """The question that an answer answers."""

    question: Text
    noncommittal: Verdict


class Sourced(_Strict):
    """A statement of the given answer, whether it is right, and the numbers of the passages that support it."""

    statement: Text
    correct: Verdict
    passages: Annotated[list[int], Field(max_length=LENGTHS[1])]


def most(text: str | None) -> int:
    """How many statements a text can hold, one of `LENGTHS`: a weak model fills any list to its end."""
    words = len((text or "").split())
    return next((length for length in LENGTHS if words <= length * WORDS_A_STATEMENT), LENGTHS[-1])


@lru_cache(maxsize=256)
def _lists(name: str, **fields: tuple[Any, int, int]) -> type[BaseModel]:
    """A schema of lists: field → (type of an item, fewest, most)."""
    typed: dict[str, Any] = {
        field: (Annotated[list[item], Field(min_length=low, max_length=high)], ...)  # type: ignore[valid-type]
        for field, (item, low, high) in fields.items()
    }
    return create_model(name, __base__=_Strict, **typed)


def _useful(sample: Sample) -> type[BaseModel]:
    count = len(sample.contexts)
    return _lists("Useful", useful=(Verdict, count, count))


def _statements_of(name: Input) -> Callable[[Sample], type[BaseModel]]:
    return lambda sample: _lists("Statements", statements=(Checked, 1, most(getattr(sample, name))))


def _claims(sample: Sample) -> type[BaseModel]:
    given, gold = most(sample.response), most(sample.reference)
    return _lists("Claims", given=(Checked, 1, given), reference=(Checked, 1, gold))


def _entities(sample: Sample) -> type[BaseModel]:
    return _lists("Entities", entities=(Text, 0, most(sample.reference)))


def _noise(sample: Sample) -> type[BaseModel]:
    statements = (Sourced, 1, most(sample.response))
    return _lists("Noise", useful=(int, 0, max(1, len(sample.contexts))), statements=statements)


@dataclass(frozen=True)
class Prompt:
    """A task over some inputs of a sample; `output` is the schema of what the model is to return for it."""

    reads: tuple[Input, ...]
    task: str
    output: Callable[[Sample], type[BaseModel]]

    def text(self, sample: Sample) -> str:
        """The prompt for a sample."""
        return "\n\n".join([*(_SHOWN[name](sample) for name in self.reads), f"Task: {self.task}\nAnswer in JSON."])

    @property
    def version(self) -> str:
        """A digest of all that is the same for every sample."""
        parts = [self.reads, self.task, self.output(_ANY).model_json_schema(), LENGTHS, WORDS_A_STATEMENT]
        return "compact " + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


_ANY = Sample("", "", ("",), "", "")

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
    _useful,
)
RECALL = Prompt(
    ("contexts", "question", "reference"),
    f"Split the reference answer into {_ONE_FACT}. For each, supported is 1 if it can be attributed to the passages, "
    "0 if it cannot.",
    _statements_of("reference"),
)
FAITHFUL = Prompt(
    ("contexts", "question", "response"),
    f"Split the given answer into {_ONE_FACT}. For each, supported is 1 if it can be directly inferred from the "
    "passages, 0 if it cannot.",
    _statements_of("response"),
)
CLAIMS = Prompt(
    ("question", "reference", "response"),
    f"Split the given answer and the reference answer into {_ONE_FACT}. For each statement of the given answer, "
    "supported is 1 if the reference answer supports it, else 0. For each statement of the reference answer, supported "
    "is 1 if the given answer says it, else 0.",
    _claims,
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
    _entities,
)
NOISE = Prompt(
    ("contexts", "question", "reference", "response"),
    "useful: the numbers of the passages that support a statement of the reference answer. statements: the given "
    f"answer split into {_ONE_FACT}; for each, correct is 1 if the reference answer supports it, else 0, and passages "
    "are the numbers of the passages from which it can be inferred.",
    _noise,
)

"""One structured question to the judge's model: a prompt and a schema in, a checked value out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from hopbench.retrieval.llm import LLM, Call, LLMError
from hopbench.retrieval.llm.client import chat_arguments
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.llm.replies import parsed

Output = TypeVar("Output", bound=BaseModel)
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


@dataclass(frozen=True)
class ModelAsker:
    """Asks a model through HopBench's client; the surrounding `calling` names the purpose of the calls."""

    llm: LLM
    limits: Limits

    async def __call__(self, prompt: str, wanted: type[Output]) -> Output:
        """The answer to `prompt` as `wanted`."""
        own, url = self.limits, self.llm.endpoint.base_url
        schema = wire_schema(wanted.model_json_schema(), url, own.items, own.chars)
        shown = [{"role": "user", "content": prompt}]
        call = Call(wanted.__name__, shown, schema, own.max_tokens, own.temperature)
        completion = await self.llm.create(**chat_arguments(self.llm.endpoint, call))
        try:
            return wanted.model_validate(parsed(completion.choices[0].message.content or ""))
        except (ValidationError, ValueError) as error:
            raise LLMError("wrong schema", " ".join(str(error).split())[:200]) from error

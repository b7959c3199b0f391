"""One structured question to the judge's model: a prompt and a schema in, a checked value out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from retrieval.llm import LLM, Call, LLMError
from retrieval.llm.batch import chat_arguments
from retrieval.llm.faults import parsed
from retrieval.llm.structured import wire_schema

Output = TypeVar("Output", bound=BaseModel)
Asker = Callable[[str, type[BaseModel]], Awaitable[BaseModel]]
"""Asks a prompt and returns an instance of the model that was wanted; raises LLMError or BudgetReached."""

TEMPERATURE = 0.01  # RAGAS's
MAX_TOKENS = {"full": 4096, "compact": 2048}  # RAGAS's 1,024 cuts long lists of statements with their reasons


@dataclass(frozen=True)
class ModelAsker:
    """Asks a model through HopBench's one gate; who is asking stands in the surrounding `calling`."""

    llm: LLM
    max_tokens: int
    temperature: float = TEMPERATURE

    async def __call__(self, prompt: str, wanted: type[Output]) -> Output:
        """The answer to `prompt` as `wanted`."""
        call = Call(
            wanted.__name__,
            [{"role": "user", "content": prompt}],
            wire_schema(wanted.model_json_schema(), self.llm.endpoint.base_url),
            self.max_tokens,
            self.temperature,
        )
        completion = await self.llm.create(**chat_arguments(self.llm.endpoint.model, call))
        try:
            return wanted.model_validate(parsed(completion.choices[0].message.content or ""))
        except (ValidationError, ValueError) as error:
            raise LLMError("wrong schema", " ".join(str(error).split())[:200]) from error

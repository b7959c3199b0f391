"""Many calls at once. A failed call is a reply with the reason."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.llm.client import LLM
from hopbench.retrieval.llm.endpoint import Endpoint
from hopbench.retrieval.llm.faults import LLMError
from hopbench.retrieval.llm.json_text import parsed
from hopbench.retrieval.llm.ledger import BudgetReached, thinking_tokens
from hopbench.retrieval.llm.scope import Scope

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `schema` (JSON schema of an object) asks for structured output; `version` is the prompt's."""

    purpose: str
    messages: Sequence[Mapping[str, str]]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    sample: str = ""
    repeat: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a call: `text`, `value` (the parsed JSON if a schema was given) and its cost, or a `failure`.

    Tokens are those of the reply, also where it comes from the cache; `tokens_cached` is the part of the prompt that
    the endpoint had cached, `tokens_thinking` the part of `tokens_out` that was thinking, which `text` does not have.
    `failure` begins with its kind (see `LLMError`).
    """

    text: str = ""
    value: Any = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_thinking: int = 0
    seconds: float = 0.0
    from_cache: bool = False
    failure: str | None = None


def ask(llm: LLM, calls: Sequence[Call]) -> list[Reply]:
    """The replies to all calls, in their order. Equal calls of one sample and repeat are told apart by occurrence."""
    if not calls:
        return []
    scopes: dict[tuple[str, str, int, str], Scope] = {}
    work = []
    for call in calls:
        whose = (call.purpose, call.sample, call.repeat, call.version)
        scope = scopes.setdefault(whose, Scope(*whose))
        chat = chat_arguments(llm.endpoint, call)
        work.append((chat, scope, llm.key_of(chat, scope)))

    async def together() -> list[Reply]:
        return await asyncio.gather(*(_reply(llm, *one) for one in work))

    future = llm.submit(together())
    try:
        return future.result()
    except BaseException:  # Ctrl-C reaches this thread, not the one that works
        future.cancel()
        raise


def chat_arguments(endpoint: Endpoint, call: Call) -> dict[str, Any]:
    """The arguments of `create` for a call. What an endpoint refuses of them, the gate replaces."""
    limit = endpoint.completion_tokens or call.max_tokens
    chat: dict[str, Any] = {"messages": list(call.messages), "max_tokens": limit, "temperature": call.temperature}
    if endpoint.reasoning_effort:
        chat["reasoning_effort"] = endpoint.reasoning_effort
    if call.schema is not None:
        form = {"name": re.sub(r"\W+", "_", call.purpose), "schema": call.schema, "strict": True}
        chat["response_format"] = {"type": "json_schema", "json_schema": form}
    return chat


async def _reply(llm: LLM, chat: dict[str, Any], scope: Scope, key: str) -> Reply:
    begun = time.perf_counter()
    try:
        completion = await llm.answer(chat, scope, key)
    except LLMError as error:
        return Reply(seconds=time.perf_counter() - begun, failure=str(error))
    except BudgetReached as error:
        return Reply(seconds=time.perf_counter() - begun, failure=f"budget reached: {error}")
    return _reply_of(completion, "response_format" in chat, time.perf_counter() - begun)


def _reply_of(completion: ChatCompletion, structured: bool, seconds: float) -> Reply:
    text, usage = completion.choices[0].message.content or "", completion.usage
    details = usage.prompt_tokens_details if usage else None
    return Reply(
        text,
        parsed(text) if structured else None,
        usage.prompt_tokens if usage else 0,
        usage.completion_tokens if usage else 0,
        (details.cached_tokens or 0) if details else 0,
        thinking_tokens(completion),
        seconds,
        bool(completion.__dict__.get("from_cache")),
    )

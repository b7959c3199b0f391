"""The gate through which every call to a language model goes: cached, counted, within the budget.

All state lives on one event loop in a thread of its own, so that callers may be plain functions, coroutines on any
loop, or libraries (instructor, RAGAS) that use it as openai's client. `ask` sends many calls at once.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hopbench.retrieval.llm.adaptation import Adapted, known
from hopbench.retrieval.llm.cache import ReplyCache, request_key
from hopbench.retrieval.llm.endpoint import Endpoint
from hopbench.retrieval.llm.faults import LLMError, Settings
from hopbench.retrieval.llm.ledger import BudgetReached, CallLedger, CallRecord, Scope, current_scope, thinking_tokens
from hopbench.retrieval.llm.replies import limit_of, parsed, read
from hopbench.retrieval.llm.sending import Sender, openai_client
from hopbench.retrieval.text.model_tokens import count_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

T = TypeVar("T")
PROMPT_MARGIN = 2  # other vocabularies may need twice the tokens, and a prompt's cost is not to be underestimated
DEFAULT_MAX_TOKENS = 4096


class LoopThread:
    """An event loop in a thread of its own, for callers without a loop or with another one."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine; its result is the future's."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """Stop the loop and wait for the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class LLM:
    """A language model. Every call goes through `create`; close it (or use `with`) when done."""

    def __init__(
        self, endpoint: Endpoint, cache_dir: Path | None, ledger: CallLedger, settings: Settings | None = None
    ) -> None:
        self.endpoint, self.ledger, self.settings = endpoint, ledger, settings or Settings()
        self._cache = None if cache_dir is None else ReplyCache(cache_dir, self.settings.max_concurrency)
        self._flying: dict[str, asyncio.Future[None]] = {}

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the loop and its connections; the ledger stays open."""
        if "_thread" in self.__dict__:
            if "_sender" in self.__dict__:
                self.submit(self._sender.close()).result()
            self._thread.close()
            del self.__dict__["_thread"]
        if self._cache is not None:
            self._cache.close()

    @cached_property
    def _thread(self) -> LoopThread:
        return LoopThread("hopbench-llm")

    @cached_property
    def _sender(self) -> Sender:
        return Sender(self.endpoint, self.settings)

    def adapted(self) -> Adapted:
        """What the endpoint refuses of requests, for records of a run."""
        found = known(self.endpoint.base_url, self.endpoint.model)
        return {"adapted": found.description} if found and found.description else {}

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the gate's loop."""
        return self._thread.submit(work)

    async def create(self, **chat: Any) -> ChatCompletion:
        """As `openai.chat.completions.create` (without streaming); from the cache where the same call is finished.

        Raises LLMError, BudgetReached. The surrounding `calling` says for whom the call is.
        """
        scope = current_scope()
        key = self.key_of(chat, scope)
        return await asyncio.wrap_future(self.submit(self.answer(chat, scope, key)))

    def openai_client(self) -> AsyncOpenAI:
        """A client for libraries: its `chat.completions.create` is this gate (nothing else of it is to be used)."""
        client = openai_client(self.endpoint, self.settings)
        client.chat.completions.create = self.create  # type: ignore[assignment,method-assign]
        return client

    def key_of(self, chat: Mapping[str, Any], scope: Scope) -> str:
        """The call's name in the cache; counts its occurrence."""
        decides = {"url": self.endpoint.base_url, "version": scope.version, "repeat": scope.repeat}
        request = request_key(**decides, **self._wire(chat))
        return f"{request}-{scope.occurrence(request)}"

    def _wire(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        return {**{name: value for name, value in chat.items() if name != "timeout"}, "model": self.endpoint.model}

    async def answer(self, chat: Mapping[str, Any], scope: Scope, key: str) -> ChatCompletion:
        """The reply to one call, on the gate's loop: from the cache, an equal call in flight, or the model."""
        while key in self._flying:
            await asyncio.wait([self._flying[key]])
        known = self._from_cache(chat, scope, key)
        if known is not None:
            return _charged(known, scope)
        if not self.settings.send:
            raise LLMError("not kept", f"the cache has no reply to it; --llm {self.endpoint.name} asks the model")
        done = self._flying[key] = self._thread.loop.create_future()
        try:
            completion = await self._from_model(chat, scope, key)
        finally:
            del self._flying[key]
            done.set_result(None)
        return _charged(completion, scope)

    async def _from_model(self, chat: Mapping[str, Any], scope: Scope, key: str) -> ChatCompletion:
        """The reply of the model, or of the cache where another process has asked meanwhile."""
        if self._cache is None:
            return await self._sent(self._wire(chat), scope)
        async with self._cache.in_flight(key):
            known = self._from_cache(chat, scope, key)
            if known is not None:
                return known
            completion = await self._sent(self._wire(chat), scope)
            # What servers send does not always have the types that openai declares.
            self._cache.put(key, json.dumps(completion.to_dict(mode="json", exclude_unset=False, warnings=False)))
        return completion

    def _from_cache(self, chat: Mapping[str, Any], scope: Scope, key: str) -> ChatCompletion | None:
        """The reply in the cache, with its row in the ledger."""
        if self._cache is None:
            return None
        reply = self._cache.get(key)
        if reply is None:
            return None
        from openai.types.chat import ChatCompletion

        account = scope.purpose, scope.sample, self.endpoint.base_url, self.endpoint.model
        self.ledger.record(CallRecord(*account, usd=0.0, outcome="cached"))
        completion = read(ChatCompletion.construct(**reply), chat)
        completion.__dict__["from_cache"] = True
        return completion

    async def _sent(self, wire: dict[str, Any], scope: Scope) -> ChatCompletion:
        """Send the call if the budget allows, and write its outcome into the ledger."""
        guess = PROMPT_MARGIN * count_tokens(str(wire.get("messages")))
        limit = limit_of(wire) or DEFAULT_MAX_TOKENS
        async with self.ledger.reserve(self.endpoint.model, guess, limit):
            endpoint, started = self.endpoint, time.perf_counter()
            call = CallRecord(scope.purpose, scope.sample, endpoint.base_url, endpoint.model, outcome="unfinished")
            try:
                completion = await self._sender.send(wire, call)
                call.outcome = "ok"
            except LLMError as error:
                call.outcome = error.kind
                raise
            finally:
                call.seconds = time.perf_counter() - started
                self.ledger.record(call.priced())
        return completion


def _charged(completion: ChatCompletion, scope: Scope) -> ChatCompletion:
    usage = completion.usage
    scope.charge(usage.prompt_tokens if usage else 0, usage.completion_tokens if usage else 0)
    return completion


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
    started = time.perf_counter()
    try:
        completion = await llm.answer(chat, scope, key)
    except LLMError as error:
        return Reply(seconds=time.perf_counter() - started, failure=str(error))
    except BudgetReached as error:
        return Reply(seconds=time.perf_counter() - started, failure=f"budget reached: {error}")
    text, usage = completion.choices[0].message.content or "", completion.usage
    details = usage.prompt_tokens_details if usage else None
    return Reply(
        text,
        parsed(text) if "response_format" in chat else None,
        usage.prompt_tokens if usage else 0,
        usage.completion_tokens if usage else 0,
        (details.cached_tokens or 0) if details else 0,
        thinking_tokens(completion),
        time.perf_counter() - started,
        bool(completion.__dict__.get("from_cache")),
    )

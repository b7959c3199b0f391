"""The gate through which every call to a language model goes: cached, counted, within the budget.

All state lives on one event loop in a thread of its own, so that callers may be plain functions, coroutines on any
loop, or libraries (instructor, RAGAS) that hold what they take for openai's client.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hopbench.retrieval.llm.adaptation import Adapted, known
from hopbench.retrieval.llm.cache import InFlightCalls, ReplyCache, request_key
from hopbench.retrieval.llm.endpoint import Endpoint
from hopbench.retrieval.llm.faults import LLMError
from hopbench.retrieval.llm.ledger import CallLedger, CallRecord, CallUsage
from hopbench.retrieval.llm.patience import Settings
from hopbench.retrieval.llm.replies import limit_of, read
from hopbench.retrieval.llm.scope import Scope, current_scope
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
        self._cache = None if cache_dir is None else ReplyCache(cache_dir)
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

    @cached_property
    def _in_flight(self) -> InFlightCalls:
        assert self._cache is not None
        return InFlightCalls(self._cache.file.parent, self.settings.max_concurrency)

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
        request = self._request_key(self._wire(chat), scope)
        return f"{request}-{scope.occurrence(request)}"

    def _request_key(self, wire: Mapping[str, Any], scope: Scope) -> str:
        return request_key(url=self.endpoint.base_url, version=scope.version, repeat=scope.repeat, **wire)

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
        async with self._in_flight.exclusive(key):
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
        reply = self._cache.get(key) or self._cache.get(self._earlier_key(chat, scope, key))
        if reply is None:
            return None
        from openai.types.chat import ChatCompletion

        self.ledger.record(CallRecord(*self._account(scope), usd=0.0, outcome="cached"))
        completion = read(ChatCompletion.construct(**reply), chat)
        completion.__dict__["from_cache"] = True
        return completion

    def _earlier_key(self, chat: Mapping[str, Any], scope: Scope, key: str) -> str:
        """The key under which versions up to 2026-11 stored replies of models that are sent max_completion_tokens."""
        wire = self._wire(chat)
        limit = {"max_completion_tokens": wire.pop("max_tokens", None)}
        wire.pop("temperature", None)
        return f"{self._request_key(wire | limit, scope)}-{key.rpartition('-')[2]}"

    def _account(self, scope: Scope) -> tuple[str, str, str, str]:
        return scope.purpose, scope.sample, self.endpoint.base_url, self.endpoint.model

    async def _sent(self, wire: dict[str, Any], scope: Scope) -> ChatCompletion:
        """Send the call if the budget allows, and write its outcome into the ledger."""
        guess = PROMPT_MARGIN * count_tokens(str(wire.get("messages")))
        limit = limit_of(wire) or DEFAULT_MAX_TOKENS
        async with self.ledger.reserve(self.endpoint.model, guess, limit):
            begun, usage, outcome = time.perf_counter(), CallUsage(), "unfinished"
            try:
                completion = await self._sender.send(wire, usage)
                outcome = "ok"
            except LLMError as error:
                outcome = error.kind
                raise
            finally:
                seconds = time.perf_counter() - begun
                self.ledger.record(usage.record(self._account(scope), seconds, outcome))
        return completion


def _charged(completion: ChatCompletion, scope: Scope) -> ChatCompletion:
    usage = completion.usage
    scope.charge(usage.prompt_tokens if usage else 0, usage.completion_tokens if usage else 0)
    return completion

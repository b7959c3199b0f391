"""Sends a call: paced, retried where that may help, stopped by the breaker, its answer checked."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.llm.adaptation import Adaptation, known, remember, with_remedy
from hopbench.retrieval.llm.endpoint import Endpoint
from hopbench.retrieval.llm.faults import LLMError, from_openai
from hopbench.retrieval.llm.ledger import CallUsage
from hopbench.retrieval.llm.pacing import Pacer
from hopbench.retrieval.llm.patience import Settings
from hopbench.retrieval.llm.replies import read, well_formed
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion


NOTICE_SECONDS = 5.0  # a shorter wait is not worth a line


class Sender:
    """Sends calls to one endpoint; all its state belongs to one event loop."""

    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self._endpoint, self._settings = endpoint, settings
        self._pacer = Pacer(settings.concurrency, settings.max_concurrency)
        self._breaker, self._retries = settings.breaker(), settings.retries()
        self._reached = False
        self._first, self._tried = asyncio.Lock(), False
        self._noticed_until = float("-inf")

    @cached_property
    def _openai(self) -> AsyncOpenAI:
        return openai_client(self._endpoint, self._settings)

    async def close(self) -> None:
        """Close the connections."""
        if "_openai" in self.__dict__:
            await self._openai.close()

    async def send(self, wire: dict[str, Any], usage: CallUsage) -> ChatCompletion:
        """The answer to a call; `usage` adds up its attempts. Raises LLMError after the last one."""
        _ = self._openai  # the first call loads openai, which takes seconds: not while the pacer measures
        faults: Counter[str] = Counter()
        self._retries.begin()
        tried: Adaptation | None = None
        while True:
            try:
                return await self._in_turn(wire, usage, tried)
            except LLMError as fault:
                faults[fault.kind] += 1
                if not self._retries.allows(fault, faults[fault.kind]):
                    raise
                pause = self._retries.pause(fault, faults[fault.kind])
                if fault.kind == "wrong schema" and not self._known.proven:  # the endpoint may ignore the schema
                    tried = self._known.with_next_form(wire)
            await asyncio.sleep(pause)

    async def _in_turn(self, wire: dict[str, Any], usage: CallUsage, tried: Adaptation | None) -> ChatCompletion:
        """An attempt. The first one goes alone: it finds out what the endpoint refuses, so that it is refused once."""
        if self._answered():
            return await self._attempt(wire, usage, tried)
        async with self._first:
            if not self._answered():
                try:
                    return await self._attempt(wire, usage, tried)
                finally:
                    self._tried = True
        return await self._attempt(wire, usage, tried)

    def _answered(self) -> bool:
        return self._tried or known(self._endpoint.base_url, self._endpoint.model) is not None

    @property
    def _known(self) -> Adaptation:
        return known(self._endpoint.base_url, self._endpoint.model) or Adaptation()

    def _remember(self, found: Adaptation) -> None:
        if description := remember(self._endpoint.base_url, self._endpoint.model, found):
            notice(f"{self._endpoint.name} {description}")

    async def _adapted(self, wire: dict[str, Any], usage: CallUsage, tried: Adaptation | None) -> ChatCompletion:
        """The endpoint's answer to the request in the form that it takes, which refusals show."""
        form = tried or self._known
        while True:
            usage.attempts += 1
            try:
                completion = well_formed(await self._sent(form.applied(wire)), self._endpoint.api_key)
            except LLMError as fault:
                changed = form.after(fault, wire)
                if changed is None:
                    raise with_remedy(fault) from None
                form = changed
            else:
                break
        if tried is None:
            self._remember(form)
        try:
            completion = read(completion, wire)
        except RecursionError:
            raise LLMError("wrong schema", "the reply is nested too deeply") from None
        finally:
            usage.add(completion)  # it was paid for, whatever it is worth
        if "response_format" in wire:
            self._remember(replace(form, proven=True))
        return completion

    async def _attempt(self, wire: dict[str, Any], usage: CallUsage, tried: Adaptation | None) -> ChatCompletion:
        async with self._pacer.slot() as sent:
            self._breaker.check()
            try:
                completion = await self._adapted(wire, usage, tried)
            except LLMError as caught:
                fault = self._bounded(caught)
                self._reached |= not fault.unreachable
                # An address that never answered is wrong, or its server is off; one that did is starting again.
                fault.lasting |= not self._reached
                self._breaker.failed(fault)
                if fault.kind == "rate limited":
                    usage.throttled += 1
                    self._pacer.refused(sent, fault.retry_after)
                elif fault.kind == "timeout":
                    self._pacer.overloaded(sent)
                raise fault from None
            self._reached = True
            self._breaker.answered()
            self._pacer.answered()
            return completion

    def _bounded(self, fault: LLMError) -> LLMError:
        """Announce a wait that the endpoint asks for; one over the limit becomes a lasting fault and ends the calls."""
        wait, longest = fault.retry_after, self._settings.longest_wait
        if wait is None or fault.lasting:
            return fault
        if wait > longest:
            message = f"the endpoint asks to wait {wait:,.0f} s, at most {longest:,.0f} s are waited: come back then"
            return LLMError("rate limited", f"{message} ({fault})", lasting=True)
        now = time.monotonic()
        if wait >= NOTICE_SECONDS and now > self._noticed_until:
            self._noticed_until = now + wait
            notice(f"{self._endpoint.name} asks to wait {wait:,.0f} s (Retry-After): waiting")
        return fault

    async def _sent(self, wire: dict[str, Any]) -> ChatCompletion:
        import openai

        try:
            # openai's timeout restarts with every byte; ours is for the whole answer.
            async with asyncio.timeout(self._settings.timeout):
                return await self._openai.chat.completions.create(**wire)  # type: ignore[no-any-return]
        except TimeoutError:
            raise LLMError("timeout", f"no answer in {self._settings.timeout:g} s") from None
        except (
            openai.OpenAIError,
            ValueError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            # Not chained: the client's own error may quote the request's headers.
            raise from_openai(error, self._endpoint.api_key) from None


def openai_client(endpoint: Endpoint, settings: Settings) -> AsyncOpenAI:
    """A client that never retries: that is ours alone, openai's own would multiply with it, unseen by the ledger."""
    import openai

    return openai.AsyncOpenAI(
        base_url=endpoint.base_url, api_key=endpoint.api_key or "none", timeout=settings.timeout, max_retries=0
    )

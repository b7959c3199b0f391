"""Sending of calls: paced, retried where that may help, stopped by the circuit breaker, their answers checked."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.llm.adaptation import Adaptation, known, remember, with_remedy
from hopbench.retrieval.llm.endpoint import Endpoint
from hopbench.retrieval.llm.faults import Breaker, LLMError, Retries, Settings, from_openai
from hopbench.retrieval.llm.ledger import CallRecord
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
        self._breaker = Breaker(settings.breaker_failures, settings.breaker_seconds)
        self._retries = Retries(settings)
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

    async def send(self, wire: dict[str, Any], call: CallRecord) -> ChatCompletion:
        """The answer to a call; its record `call` adds up the attempts. Raises LLMError after the last one."""
        _ = self._openai  # the first call loads openai, which takes seconds: not while the pacer measures
        faults: Counter[str] = Counter()
        self._retries.begin()
        tried: Adaptation | None = None
        while True:
            try:
                return await self._in_turn(wire, call, tried)
            except LLMError as fault:
                faults[fault.kind] += 1
                if not self._retries.allows(fault, faults[fault.kind]):
                    raise
                pause = self._retries.pause(fault, faults[fault.kind])
                if fault.kind == "wrong schema" and not self._known.proven:  # the endpoint may ignore the schema
                    tried = self._known.with_next_form(wire)
            await asyncio.sleep(pause)

    async def _in_turn(self, wire: dict[str, Any], call: CallRecord, tried: Adaptation | None) -> ChatCompletion:
        """An attempt. The first one goes alone: it finds out what the endpoint refuses, so that it is refused once."""
        if self._answered():
            return await self._attempt(wire, call, tried)
        async with self._first:
            if not self._answered():
                try:
                    return await self._attempt(wire, call, tried)
                finally:
                    self._tried = True
        return await self._attempt(wire, call, tried)

    def _answered(self) -> bool:
        return self._tried or known(self._endpoint.base_url, self._endpoint.model) is not None

    @property
    def _known(self) -> Adaptation:
        return known(self._endpoint.base_url, self._endpoint.model) or Adaptation()

    def _remember(self, found: Adaptation) -> None:
        if description := remember(self._endpoint.base_url, self._endpoint.model, found):
            notice(f"{self._endpoint.name} {description}")

    async def _adapted(self, wire: dict[str, Any], call: CallRecord, tried: Adaptation | None) -> ChatCompletion:
        """The endpoint's answer to the request in the form that it takes, which refusals show."""
        form = tried or self._known
        while True:
            call.attempts += 1
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
            call.add(completion)  # it was paid for, whatever it is worth
        if "response_format" in wire:
            self._remember(replace(form, proven=True))
        return completion

    async def _attempt(self, wire: dict[str, Any], call: CallRecord, tried: Adaptation | None) -> ChatCompletion:
        async with self._pacer.slot() as sent:
            self._breaker.check()
            try:
                completion = await self._adapted(wire, call, tried)
            except LLMError as caught:
                fault = self._bounded(caught)
                self._reached |= not fault.unreachable
                # An address that never answered is wrong, or its server is off; one that did is starting again.
                fault.lasting |= not self._reached
                self._breaker.failed(fault)
                if fault.kind == "rate limited":
                    call.throttled += 1
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


RATE_FACTOR = 0.95  # of the measured rate: calls leave below it
FAST, SOON, LATE = 4, 18, 100  # calls until the measured rate is tried again: a guess, and a measured one
MAX_ADMISSIONS = 5000  # remembered
MIN_SECONDS = 0.25  # a shorter time measures no rate
WINDOW, SAMPLE = 1.0, 20  # a rate is measured over the last second, or over the last 20 calls where that is longer


class Pacer:
    """Paces the calls of one endpoint, by the refusals it meets; for one event loop. `clock` gives seconds.

    The number in flight grows by one for each full round without a refusal and halves with one (AIMD). That alone
    cannot keep to a limit of calls per second where calls are fast: one at a time may be too many. So the first
    refusal also measures the rate that was admitted, and from then on calls leave at
        rate = admitted · (0.95 + 0.05 (n/m)³)        n calls after the refusal
    which stays below the measured rate for m calls and then searches for more, ever faster. m is 18, so that an
    occasional refusal does not slow the rest down for good; more where a refusal costs a long wait. Everything waits
    for Retry-After. (Simulated, 300 calls against a limit of 10 a second, with latencies of 3 ms to 0.5 s: a token
    bucket of 10 takes 29 to 31 s, where none can take less than 29; sliding and fixed windows take 33 to 48 s; 3 to 9%
    of the attempts are refused.)
    """

    def __init__(self, start: int, maximum: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = float(start)
        self._maximum = maximum
        self._clock = clock
        self._active = 0
        self._known = float("inf")
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._sent: deque[float] = deque(maxlen=MAX_ADMISSIONS)
        self._admitted: float | None = None
        self._since, self._search = 0, float(FAST)
        self._held = False
        self._cut, self._before = float("-inf"), float("-inf")
        self._next = self._until = float("-inf")

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for leave to send, in order of arrival; yields the time of sending, which `refused` wants back."""
        async with self._turn:
            self._held = False
            while (wait := self._wait()) > 0:
                if wait == float("inf"):
                    self._freed.clear()
                    await self._freed.wait()
                else:
                    self._held = True
                    await asyncio.sleep(wait)
            sent = self._leave()
        try:
            yield sent
        finally:
            self._active -= 1
            self._freed.set()

    def _wait(self) -> float:
        """Seconds until the next call may leave; infinite while all slots are taken."""
        if self._active >= int(self.limit):
            return float("inf")
        return max(self._until, self._next) - self._clock()

    def _leave(self) -> float:
        now = self._clock()
        if self.rate is not None:
            self._next = max(self._next, now) + 1.0 / self.rate
        self._active += 1
        self._since += self._held
        self._sent.append(now)
        return now

    @property
    def rate(self) -> float | None:
        """Calls per second that may leave; None before the first refusal."""
        return (
            None
            if self._admitted is None
            else self._admitted * (RATE_FACTOR + (self._since / self._search) ** 3 * (1 - RATE_FACTOR))
        )

    def answered(self) -> None:
        """A call was admitted and answered."""
        step = 0.5 if self.limit < self._known else 1.0 / self.limit
        self.limit = min(float(self._maximum), self.limit + step)

    def overloaded(self, sent: float) -> None:
        """The endpoint was too slow or refused without measure: halve, once for all calls sent before the last cut."""
        if sent >= self._cut:
            self._before, self._cut = self._cut, self._clock()
            self._known, self.limit = self.limit, max(1.0, self.limit / 2)

    def refused(self, sent: float, retry_after: float | None) -> None:
        """A call sent at `sent` met 429 or 503: halve, measure, wait."""
        self._sent.remove(sent)
        self.overloaded(sent)
        measured, calls = self._measured()
        if calls >= SAMPLE / 2:
            pause = 8 * (retry_after or 0.0) * measured  # a search may cost an eighth of the time
            self._search = min(max(pause, SOON), LATE)
        if self.rate is not None and self._held and self._since >= SAMPLE:  # admitted till now, at a rate that rose
            measured = (measured + self.rate) / 2
        elif self._admitted is not None and not (self._held and calls >= SAMPLE / 2):
            measured = max(measured, 0.7 * self._admitted)  # few calls, or slow ones, tell little of the limit
        measured = max(measured, 1.0 / max(1.0, retry_after or 0.0))  # one call for each wait is never too many
        self._admitted, self._since = measured, 0
        now = self._clock()
        self._until = max(self._until, now + (1.0 / measured if retry_after is None else retry_after))
        self._next = self._until

    def _measured(self) -> tuple[float, int]:
        """Calls per second admitted between the last two cuts (a refusal at the same cut corrects it), of how many."""
        sent = list(self._sent)
        end = bisect_left(sent, self._cut)
        begin = max(self._before, sent[0] if sent else self._cut)
        first = bisect_left(sent, begin)
        if end - first > SAMPLE:
            begin = max(begin, min(self._cut - WINDOW, sent[end - SAMPLE]))
            first = bisect_left(sent, begin)
        return max(end - first, 1) / max(self._cut - begin, MIN_SECONDS), end - first

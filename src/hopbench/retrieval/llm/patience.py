"""Retries: pauses with jitter, a budget of retries, a circuit breaker, and their settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.llm.faults import CONTENT, PASSING, LLMError


class Retries:
    """Decides on another attempt.

    All calls share a budget of retries, `share` of the calls and `reserve` more, so that an endpoint in trouble is not
    asked many times as often as one that is well. Waiting for a rate limit is free: it is what the endpoint asked for.
    """

    def __init__(self, *, attempts: int, throttled: int, share: float, reserve: int, longest_wait: float) -> None:
        self._limits = {"rate limited": throttled, **dict.fromkeys(PASSING, attempts), **dict.fromkeys(CONTENT, 2)}
        self._share, self._left, self._longest_wait = share, float(reserve), longest_wait
        self._jitter = np.random.default_rng(0)

    def begin(self) -> None:
        """A new call brings its share of retries."""
        self._left += self._share

    def allows(self, fault: LLMError, seen: int) -> bool:
        """Whether a call that met a fault of this kind `seen` times may try again; takes the retry."""
        if fault.lasting or seen >= self._limits.get(fault.kind, 0):
            return False
        if fault.kind == "rate limited":
            return (fault.retry_after or 0.0) <= self._longest_wait
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def pause(self, fault: LLMError, seen: int) -> float:
        """Seconds before the next attempt: half to all of .5, 1, 2, … 30; none where waiting would change nothing."""
        if fault.kind in CONTENT or fault.kind == "rate limited":  # the pacer waits for the latter
            return 0.0
        return min(30.0, 0.5 * 2.0 ** (seen - 1)) * float(self._jitter.uniform(0.5, 1.0))


class Breaker:
    """Opens after `failures` calls in a row that got no answer, so that the rest fail at once instead of slowly.

    After `seconds` one call may try; its answer closes the breaker. A refusal that would meet every call (a wrong key,
    an unknown model) opens it for good.
    """

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._seconds, self._clock = failures, seconds, clock
        self._failures = 0
        self._open_until = float("-inf")
        self._last = ""

    def check(self) -> None:
        """Raise LLMError while open."""
        now = self._clock()
        if now < self._open_until:
            raise LLMError("breaker open", f"the endpoint does not answer; last: {self._last}")
        if self._failures >= self._limit:
            self._open_until = now + self._seconds  # this one tries, the others wait for it

    def answered(self) -> None:
        """Count an answer, even a useless one: the endpoint is up."""
        self._failures = 0
        self._open_until = min(self._open_until, self._clock())

    def failed(self, fault: LLMError) -> None:
        """Count a fault."""
        if fault.kind in CONTENT or fault.kind == "bad request" or (fault.kind == "rate limited" and not fault.lasting):
            self.answered()
            return
        self._failures += 1
        self._last = str(fault)
        if fault.lasting:
            self._open_until = float("inf")
        elif self._failures >= self._limit:
            self._open_until = self._clock() + self._seconds


@dataclass(frozen=True)
class Settings:
    """Limits of calls to an endpoint. `timeout` is seconds of one attempt, in which a slow local model must answer.

    `attempts` bounds a call's attempts at faults that may pass, `throttled` its refusals by a rate limit; a useless
    answer (empty, cut, of the wrong form) is asked for once more. All calls together may use `retry_share` retries a
    call and `retry_reserve` more. An endpoint that asks to wait (Retry-After) for more than `longest_wait` seconds is
    not asked again by this run; a shorter wait is obeyed and announced on the console. Concurrency starts at
    `concurrency`. Without `send` only the cache answers.
    """

    timeout: float = 300.0
    attempts: int = 4
    throttled: int = 10
    retry_share: float = 0.3
    retry_reserve: int = 10
    longest_wait: float = 300.0
    concurrency: int = 8
    max_concurrency: int = 64
    breaker_failures: int = 12
    breaker_seconds: float = 30.0
    send: bool = True

    def breaker(self) -> Breaker:
        """A closed breaker."""
        return Breaker(self.breaker_failures, self.breaker_seconds)

    def retries(self) -> Retries:
        """A full budget of retries."""
        return Retries(
            attempts=self.attempts,
            throttled=self.throttled,
            share=self.retry_share,
            reserve=self.retry_reserve,
            longest_wait=self.longest_wait,
        )

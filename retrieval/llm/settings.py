"""How patient the gate is with an endpoint."""

from __future__ import annotations

from dataclasses import dataclass

from hopbench.retrieval.llm.patience import Breaker, Retries


@dataclass(frozen=True)
class Settings:
    """Patience with an endpoint. `timeout` is seconds of one attempt, in which a slow local model must answer.

    `attempts` bounds a call's attempts at faults that may pass, `throttled` its refusals by a rate limit; a useless
    answer (empty, cut, of the wrong form) is asked for once more. All calls together may use `retry_share` retries a
    call and `retry_reserve` more. An endpoint that asks to wait (Retry-After) for more than `longest_wait` seconds is
    not asked again by this run; a shorter wait is kept to, and said on the console. Concurrency starts at
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

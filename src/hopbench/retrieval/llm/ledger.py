"""The ledger of calls to language models: a row per call in SQLite, totals by purpose, and a cap in dollars.

Prices are those of `hopbench.retrieval.llm.endpoint`; the cost of a model without a price is unknown (None), never 0.
A call's scope says whose it is, and which of several equal requests it is in the cache.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.retrieval.llm.cache import connect, explained
from hopbench.retrieval.llm.endpoint import price_of
from hopbench.retrieval.support.errors import IncompleteError

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

_SCHEMA = """CREATE TABLE IF NOT EXISTS calls (run TEXT NOT NULL, at REAL NOT NULL, purpose TEXT NOT NULL,
sample TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, tokens_in INTEGER NOT NULL,
tokens_out INTEGER NOT NULL, tokens_cached INTEGER NOT NULL, usd REAL, seconds REAL NOT NULL,
attempts INTEGER NOT NULL, throttled INTEGER NOT NULL, outcome TEXT NOT NULL,
tokens_thinking INTEGER NOT NULL DEFAULT 0)"""
_TOTALS = """SELECT purpose, count(*), sum(outcome = 'cached'), sum(outcome NOT IN ('ok', 'cached')), sum(attempts),
sum(throttled), sum(tokens_in), sum(tokens_out), sum(tokens_cached), sum(tokens_thinking), sum(usd), count(usd),
sum(seconds)
FROM calls WHERE run = ? GROUP BY purpose ORDER BY purpose"""
LOOK_SECONDS = 0.02  # how often a call that waits for room under the cap looks for it


class BudgetReached(IncompleteError):  # noqa: N818 - it says what happened, and nothing is wrong
    """The next call could exceed the cap. Finished work is saved, and the same command continues from there."""


@dataclass(slots=True)
class CallRecord:
    """One call with all its attempts. `outcome` is `ok`, `cached`, or the kind of failure.

    An answer from the cache cost nothing. The fields are the ledger's columns, after the run and the time.
    """

    purpose: str
    sample: str
    endpoint: str
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    usd: float | None = None
    seconds: float = 0.0
    attempts: int = 0
    throttled: int = 0
    outcome: str = "ok"
    tokens_thinking: int = 0

    def add(self, completion: ChatCompletion) -> None:
        """Add an answered attempt, whatever its answer is worth."""
        usage = completion.usage
        if usage is not None:
            self.tokens_in += usage.prompt_tokens or 0  # some endpoints leave them out
            self.tokens_out += usage.completion_tokens or 0
            cached = getattr(usage.prompt_tokens_details, "cached_tokens", None)
            self.tokens_cached += cached if isinstance(cached, int) else 0
            self.tokens_thinking += thinking_tokens(completion)

    def priced(self) -> CallRecord:
        """With its cost, None where the model has no price."""
        price = price_of(self.model)
        self.usd = None if price is None else price.of(self.tokens_in, self.tokens_cached, self.tokens_out)
        return self


@dataclass(frozen=True, slots=True)
class Totals:
    """Calls of one purpose; `tokens_thinking` are among `tokens_out`.

    `usd` is None where some call that was sent has no price; `seconds` add up all calls.
    """

    calls: int
    cached: int
    failed: int
    attempts: int
    throttled: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    tokens_thinking: int
    usd: float | None
    seconds: float


def thinking_tokens(completion: ChatCompletion) -> int:
    """The tokens of a completion that its model spent on thinking."""
    details = completion.usage.completion_tokens_details if completion.usage else None
    tokens = getattr(details, "reasoning_tokens", None)
    return tokens if isinstance(tokens, int) else 0


class CallLedger:
    """The calls of this process (`run`), in `file` beside those of earlier ones; `budget` caps its dollars."""

    def __init__(self, file: Path | None = None, budget: float | None = None) -> None:
        self.budget = budget
        self.run = f"{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}-{os.getpid()}-{secrets.token_hex(3)}"
        self.spent = 0.0
        self.reached = False
        self._aside: list[float] = []
        self._file = file
        self._lock = threading.Lock()
        with explained(file):
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(file or ":memory:", _SCHEMA)

    @asynccontextmanager
    async def reserve(self, model: str, tokens_in: int, tokens_out: int) -> AsyncIterator[None]:
        """Reserve what a call may cost at most; waits while calls in flight have reserved too much.

        Raises BudgetReached where the cap would not hold it beside what is spent. Without a price nothing is capped.
        """
        price = price_of(model)
        worst = 0.0 if price is None or self.budget is None else price.of(tokens_in, 0, tokens_out)
        while not self._set_aside(worst):
            await asyncio.sleep(LOOK_SECONDS)
        try:
            yield
        finally:
            with self._lock:
                self._aside.remove(worst)

    def _set_aside(self, worst: float) -> bool:
        with self._lock:
            if self.budget is not None and worst:
                if self.spent + worst > self.budget:
                    self.reached = True
                    remedy = "the same command goes on, and may spend its --budget again"
                    if worst > self.budget:
                        remedy = f"the same command goes on with a --budget of over ${worst:.4f}"
                    raise BudgetReached(
                        f"the budget of ${self.budget:g} is reached: ${self.spent:.4f} spent, the next call may cost "
                        f"${worst:.4f}. What is finished is kept: {remedy}"
                    )
                if self._aside and self.spent + sum(self._aside) + worst > self.budget:
                    return False
            self._aside.append(worst)
            return True

    def record(self, call: CallRecord) -> None:
        """Add a call; it is on disk when this returns."""
        with explained(self._file), self._lock:
            self.spent += call.usd or 0.0
            self._connection.execute(
                f"INSERT INTO calls VALUES ({','.join('?' * 15)})", (self.run, time.time(), *astuple(call))
            )

    def totals(self) -> dict[str, Totals]:
        """The totals of this process's calls, by purpose."""
        with explained(self._file), self._lock:
            rows = self._connection.execute(_TOTALS, (self.run,)).fetchall()
        return {
            purpose: Totals(*(*counts, usd if priced == counts[0] else None, seconds))
            for purpose, *counts, usd, priced, seconds in rows
        }

    def has_answered(self, endpoint: str, model: str) -> bool:
        """Whether a model at an address ever answered a call, in this process or an earlier one."""
        query = "SELECT 1 FROM calls WHERE endpoint = ? AND model = ? AND outcome = 'ok' LIMIT 1"
        with explained(self._file), self._lock:
            return self._connection.execute(query, (endpoint, model)).fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


@dataclass
class Scope:
    """One sample's calls for one purpose, with their totals (an answer from the cache counts like a fresh one).

    `version` is the prompt's; `repeat` numbers repetitions that must not share answers.
    """

    purpose: str = "other"
    sample: str = ""
    repeat: int = 0
    version: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    _seen: Counter[str] = field(default_factory=Counter)

    def occurrence(self, request: str) -> int:
        """How often this scope has sent the same request before: 0, 1, …"""
        self._seen[request] += 1
        return self._seen[request] - 1

    def charge(self, tokens_in: int, tokens_out: int) -> None:
        """Count a call."""
        self.calls += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out


_CURRENT: ContextVar[Scope | None] = ContextVar("hopbench_llm_scope", default=None)


@contextmanager
def calling(*, purpose: str, sample: str = "", repeat: int = 0, version: str = "") -> Iterator[Scope]:
    """Calls made inside (also by tasks started inside) belong to this purpose, sample, repeat and prompt version."""
    scope = Scope(purpose, sample, repeat, version)
    token = _CURRENT.set(scope)
    try:
        yield scope
    finally:
        _CURRENT.reset(token)


def current_scope() -> Scope:
    """The innermost `calling`; a scope of its own for a call outside any."""
    return _CURRENT.get() or Scope()

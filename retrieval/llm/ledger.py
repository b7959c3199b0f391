"""What calls to language models cost: a row for each in SQLite, totals by purpose, and a cap in dollars.

Prices are those of `retrieval.llm.prices`; the cost of a model without a price is unknown (None), never 0.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from retrieval.errors import IncompleteError
from retrieval.llm.cache import connect, explained
from retrieval.llm.prices import price_of

_SCHEMA = """CREATE TABLE IF NOT EXISTS calls (run TEXT NOT NULL, at REAL NOT NULL, purpose TEXT NOT NULL,
sample TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, tokens_in INTEGER NOT NULL,
tokens_out INTEGER NOT NULL, tokens_cached INTEGER NOT NULL, usd REAL, seconds REAL NOT NULL,
attempts INTEGER NOT NULL, throttled INTEGER NOT NULL, outcome TEXT NOT NULL)"""
_TOTALS = """SELECT purpose, count(*), sum(outcome = 'cached'), sum(outcome NOT IN ('ok', 'cached')), sum(attempts),
sum(throttled), sum(tokens_in), sum(tokens_out), sum(tokens_cached), sum(usd), count(usd), sum(seconds)
FROM calls WHERE run = ? GROUP BY purpose ORDER BY purpose"""


class BudgetReached(IncompleteError):  # noqa: N818 - it says what happened, and nothing is wrong
    """The next call could exceed the cap; what is finished is kept, the same command goes on from there."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call. `outcome` is `ok`, `cached`, or the kind of failure; an answer from the cache cost nothing."""

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


@dataclass(frozen=True, slots=True)
class Totals:
    """Calls of one purpose. `usd` is None where some call that was sent has no price; `seconds` add up all calls."""

    calls: int
    cached: int
    failed: int
    attempts: int
    throttled: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    usd: float | None
    seconds: float


class CallLedger:
    """The calls of this process (`run`), in `file` beside those of earlier ones; `budget` caps its dollars."""

    def __init__(self, file: Path | None = None, budget: float | None = None) -> None:
        self.budget = budget
        self.run = f"{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}-{os.getpid()}-{secrets.token_hex(3)}"
        self.spent = 0.0
        self.reached = False
        self._reserved = 0.0
        self._file = file
        self._lock = threading.Lock()
        with explained(file):
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(file or ":memory:", _SCHEMA)

    @contextmanager
    def reserve(self, model: str, tokens_in: int, tokens_out: int) -> Iterator[None]:
        """Set aside what a call may cost at most; raises BudgetReached where the cap would not hold it.

        A model without a price is not capped.
        """
        price = price_of(model)
        worst = 0.0 if price is None or self.budget is None else price.of(tokens_in, 0, tokens_out)
        with self._lock:
            if self.budget is not None and worst and self.spent + self._reserved + worst > self.budget:
                self.reached = True
                raise BudgetReached(
                    f"the budget of ${self.budget:g} is reached: ${self.spent:.4f} spent, the next call may cost "
                    f"${worst:.4f}. What is finished is kept: run the same command with a higher --budget to go on"
                )
            self._reserved += worst
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= worst

    def record(self, call: CallRecord) -> None:
        """Add a call; it is on disk when this returns."""
        with explained(self._file), self._lock:
            self.spent += call.usd or 0.0
            self._connection.execute(
                f"INSERT INTO calls VALUES ({','.join('?' * 14)})", (self.run, time.time(), *astuple(call))
            )

    def totals(self) -> dict[str, Totals]:
        """What this process' calls came to, by purpose."""
        with explained(self._file), self._lock:
            rows = self._connection.execute(_TOTALS, (self.run,)).fetchall()
        return {
            purpose: Totals(*(*counts, usd if priced == counts[0] else None, seconds))
            for purpose, *counts, usd, priced, seconds in rows
        }

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

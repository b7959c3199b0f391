"""Pacing of calls: how many may be in flight and how fast they may be sent, learned from the endpoint's refusals.

The number in flight grows by one for each full round without a refusal and halves with one (AIMD). That alone cannot
keep to a limit of calls per second where calls are fast: one at a time may be too many. So the first refusal also
measures the rate that was admitted, and from then on calls leave at
    rate = admitted · (.95 + .05 (n/m)³)        n calls after the refusal
which stays below the measured rate for m calls and then searches for more, ever faster. m is 18, so that a refusal now
and then does not slow the rest down for good; more where a refusal costs a long wait. Everything waits for Retry-After.
(Simulated, 300 calls where a limit lets 10 a second through, with latencies of 3 ms to .5 s: a bucket of 10 takes 29 to
31 s, where none can take less than 29; sliding and fixed windows 33 to 48 s; 3 to 9% of the attempts are refused.)
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

BELOW = 0.95
FAST, SOON, LATE = 4, 18, 100  # calls until the measured rate is tried again: a guess, and a measured one
KEPT = 5000  # admissions remembered
FLOOR = 0.25  # seconds: a shorter time measures no rate
WINDOW, SAMPLE = 1.0, 20  # a rate is measured over the last second, or over the last 20 calls where that is longer


class Pacer:
    """Admits calls of one endpoint; for one event loop. `clock` gives seconds."""

    def __init__(self, start: int, maximum: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = float(start)
        self._maximum = maximum
        self._clock = clock
        self._active = 0
        self._known = float("inf")
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._sent: deque[float] = deque(maxlen=KEPT)
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
            else self._admitted * (BELOW + (self._since / self._search) ** 3 * (1 - BELOW))
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
        return max(end - first, 1) / max(self._cut - begin, FLOOR), end - first

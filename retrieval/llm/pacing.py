"""How many calls may be in flight and how fast they may leave, learned from what the endpoint refuses.

The number in flight grows by one for each full round without a refusal and halves with one (AIMD). That alone cannot
keep to a limit of calls per second where calls are fast: one at a time may be too many. So the first refusal also
measures the rate that was admitted, and from then on calls leave at
    rate = admitted · (.9 + n²/10000)        n calls after the refusal
which stays below the measured rate for 32 calls and then searches for more, ever faster: against a fixed limit about
one call in 50 is refused, and a refusal now and then (one call in 30) does not slow the rest down for good. Everything
waits for Retry-After.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

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
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._sent: deque[float] = deque(maxlen=KEPT)
        self._admitted: float | None = None
        self._since = 0
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
        self._since += 1
        self._sent.append(now)
        return now

    @property
    def rate(self) -> float | None:
        """Calls per second that may leave; None before the first refusal."""
        return None if self._admitted is None else self._admitted * (0.9 + 1e-4 * self._since**2)

    def answered(self) -> None:
        """A call was admitted and answered."""
        self.limit = min(float(self._maximum), self.limit + 1.0 / self.limit)

    def overloaded(self, sent: float) -> None:
        """The endpoint was too slow or refused without measure: halve, once for all calls sent before the last cut."""
        if sent >= self._cut:
            self._before, self._cut = self._cut, self._clock()
            self.limit = max(1.0, self.limit / 2)

    def refused(self, sent: float, retry_after: float | None) -> None:
        """A call sent at `sent` met 429 or 503: halve, measure, wait."""
        self._sent.remove(sent)
        self.overloaded(sent)
        measured = self._measured()
        if self.rate is not None and not self._held:  # calls came slower than they might: nothing tells the limit
            measured = max(measured, 0.7 * self.rate)
        self._admitted, self._since = measured, 0
        now = self._clock()
        self._until = max(self._until, now + (1.0 / measured if retry_after is None else retry_after))
        self._next = self._until

    def _measured(self) -> float:
        """Calls per second that were admitted between the last two cuts (a refusal at the same cut corrects it)."""
        sent = list(self._sent)
        end = bisect_left(sent, self._cut)
        begin = max(self._before, sent[0] if sent else self._cut)
        first = bisect_left(sent, begin)
        if end - first > SAMPLE:
            begin = max(begin, min(self._cut - WINDOW, sent[end - SAMPLE]))
            first = bisect_left(sent, begin)
        return max(end - first, 1) / max(self._cut - begin, FLOOR)

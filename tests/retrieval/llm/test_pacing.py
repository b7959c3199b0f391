"""The pacer, on a clock that jumps: what a limit of calls per second lets through, and how much is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from hopbench.retrieval.llm.sending import Pacer

Admits = Callable[[float], bool]


class JumpingLoop(asyncio.SelectorEventLoop):
    """Does not sleep: when nothing is ready, its clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._jumped = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None) -> object:
            ready = select(0)
            if not ready and timeout:
                self._jumped += timeout
            return ready

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._jumped


def bucket(rate: float, size: float) -> Admits:
    state = [size, 0.0]

    def admits(now: float) -> bool:
        state[:] = [min(size, state[0] + (now - state[1]) * rate), now]
        admitted = state[0] >= 1
        state[0] -= admitted
        return admitted

    return admits


def window(count: int, seconds: float) -> Admits:
    recent: list[float] = []

    def admits(now: float) -> bool:
        recent[:] = [at for at in recent if at > now - seconds]
        if len(recent) >= count:
            return False
        recent.append(now)
        return True

    return admits


def spent(admits: Admits, retry_after: float | None, latency: float, calls: int) -> tuple[float, float]:
    """Seconds, and the share of attempts that were refused."""
    loop = JumpingLoop()
    attempts = refused = 0

    async def one(pacer: Pacer) -> None:
        nonlocal attempts, refused
        while True:
            async with pacer.slot() as sent:
                attempts += 1
                await asyncio.sleep(latency / 4)
                if admits(loop.time()):
                    await asyncio.sleep(latency * 3 / 4)
                    pacer.answered()
                    return
                refused += 1
                pacer.refused(sent, retry_after)

    async def everything() -> None:
        pacer = Pacer(8, 64, loop.time)
        await asyncio.gather(*(one(pacer) for _ in range(calls)))

    try:
        loop.run_until_complete(everything())
        return loop.time(), refused / attempts
    finally:
        loop.close()


@pytest.mark.parametrize("latency", [0.003, 0.05, 0.5])
@pytest.mark.parametrize("retry_after", [1.0, 0.1, None])
def test_a_bucket_of_ten_a_second_is_emptied_as_fast_as_it_fills(latency: float, retry_after: float | None) -> None:
    seconds, refused = spent(bucket(10, 10), retry_after, latency, 300)
    assert seconds <= 39
    assert refused <= 0.1


@pytest.mark.parametrize("latency", [0.003, 0.05])
def test_a_sliding_window_is_kept_to(latency: float) -> None:
    seconds, refused = spent(window(10, 1.0), 1.0, latency, 300)
    assert seconds <= 39
    assert refused <= 0.1


def test_a_refusal_now_and_then_does_not_slow_the_rest_down_for_good() -> None:
    dice = random.Random(0)
    seconds, _ = spent(lambda _: dice.random() >= 0.03, 0.05, 0.01, 500)
    assert seconds <= 10


def test_without_a_limit_nothing_waits() -> None:
    # 64 at once in the end: 500 calls of .1 s need at least .8 s; growing from 8 takes a little longer.
    seconds, refused = spent(lambda _: True, None, 0.1, 500)
    assert refused == 0
    assert seconds <= 2.0


def test_the_number_in_flight_halves_once_for_calls_that_left_together() -> None:
    async def refused_together() -> float:
        pacer = Pacer(8, 64)
        async with pacer.slot() as first, pacer.slot() as second:
            pacer.refused(first, 0.0)
            pacer.refused(second, 0.0)
        return pacer.limit

    assert 4.0 == asyncio.run(refused_together())

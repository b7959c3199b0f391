"""The world as a stream of communities, in memory that does not grow with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from random import Random

from hopbench.eval.hopworld.builder import Builder
from hopbench.eval.hopworld.model import Community
from hopbench.eval.hopworld.names import Namer

FEWEST_ENTITIES = 24  # that a community has
_STEMS = 80  # that a community needs, at most
_WINDOW = 30  # communities that a new one can be linked with


def communities(seed: int, count: int) -> Iterator[tuple[Community, Sequence[Community]]]:
    """Yield up to `count` communities, each with the older ones that it may be linked with."""
    namer = Namer(seed, _STEMS * count + 200)
    known: deque[Community] = deque()
    for index in range(count):
        # random.Random draws single numbers many times faster than a numpy Generator.
        made = Builder(Random(seed * 1_000_003 + index), namer, index, known).build()
        yield made, known
        known.append(made)
        if len(known) > _WINDOW:
            known.popleft().forget()

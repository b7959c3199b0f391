"""The hits of a ranking, most of them made when somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Self, overload

from hopbench.retrieval.types import Hit

DETAILED = 20  # hits of which a trial keeps components and path; of the others it keeps ids and scores


class LazyHits(Sequence[Hit]):
    """Hits whose ids and scores are known, made `DETAILED` at a time: the first ones now, others when looked at.

    `make` makes those at some places. A hundred hits with their paths can take longer than to find them. Equal to any
    list or tuple of these hits.
    """

    def __init__(self, scored: Sequence[tuple[str, float]], make: Callable[[range], Sequence[Hit]]) -> None:
        self.scored, self._make = scored, make
        self._made = {0: make(range(len(scored))[:DETAILED])}

    @classmethod
    def one_by_one(cls, scored: Sequence[tuple[str, float]], make: Callable[[int], Hit]) -> Self:
        """Hits where `make` makes the one at a place."""
        return cls(scored, lambda places: [*map(make, places)])

    def some(self, places: Sequence[int]) -> LazyHits:
        """Those at some places, in their order; no other is made for them than those that share a block with one."""
        return self.one_by_one([self.scored[place] for place in places], lambda number: self[places[number]])

    def __len__(self) -> int:
        return len(self.scored)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> list[Hit]: ...

    def __getitem__(self, place: int | slice) -> Hit | list[Hit]:
        places = range(len(self))[place]
        return self._at(places) if isinstance(places, int) else [self._at(one) for one in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple, LazyHits)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def _at(self, place: int) -> Hit:
        block, within = divmod(place, DETAILED)
        if block not in self._made:
            self._made[block] = self._make(range(len(self))[place - within :][:DETAILED])
        return self._made[block][within]


def scored(hits: Sequence[Hit]) -> Iterable[tuple[str, float]]:
    """Chunk ids with scores; no hit is made for them."""
    return hits.scored if isinstance(hits, LazyHits) else ((hit.chunk_id, hit.score) for hit in hits)

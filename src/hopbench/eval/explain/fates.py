"""What became of a gold passage under one strategy, as values that a command can print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hopbench.eval.explain.answer import Answer, RankedPassage
from hopbench.eval.explain.changes import HelpfulChange
from hopbench.eval.explain.routes import Route

Kind = Literal[
    "seed",
    "returned",
    "reached",
    "filled",
    "out-ranked",
    "pruned",
    "not followed",
    "other edges",
    "never linked",
    "not ranked",
    "not returned",
    "failed",
    "not in the corpus",
]
"""In the top k: `seed` (by the initial ranking), `reached` (an edge led there), `filled` (completed from the initial
ranking), `returned` (by a foreign retriever). Below it, or beyond the end of a full ranking: `out-ranked`. Not ranked
by the strategy itself: `pruned` (one changed parameter ranks it), `not followed` (the graph leads there, no single
parameter explains it), `other edges` (only edges that the strategy does not follow lead there), `never linked` (no way
of 3 steps), `not ranked` (a hop-free ranking ends before it), `not returned` (by a foreign retriever). `failed`: no
ranking at all. `not in the corpus`: no ranking can have it."""

RIVALS = 3


@dataclass(frozen=True, slots=True)
class Rival:
    """A passage that is ranked above, and the component in which it leads most, with both values; None for a tie."""

    place: RankedPassage
    component: str | None
    theirs: float = 0.0
    ours: float = 0.0


@dataclass(frozen=True, slots=True)
class Fate:
    """A gold passage's fate; `changes` are the single parameter changes that would bring it in (the top k)."""

    passage: str
    kind: Kind
    place: RankedPassage | None = None
    initial_rank: int | None = None
    rivals: tuple[Rival, ...] = ()
    changes: tuple[HelpfulChange, ...] = ()
    route: Route | None = None

    @property
    def found(self) -> bool:
        """Whether it is in the top k."""
        return self.kind in ("seed", "returned", "reached", "filled")


def rivals(answer: Answer, place: RankedPassage, top: int) -> tuple[Rival, ...]:
    """The last passages of the top `top`: those that `place` would have to beat."""
    return tuple(_rival(answer.places, other, place) for other in answer.places[max(0, top - RIVALS) : top])


def _rival(places: Sequence[RankedPassage], other: RankedPassage, ours: RankedPassage) -> Rival:
    """The component whose lead is largest, measured by the range it takes over the ranking; absent counts as 0."""
    leads = {}
    for name in sorted({*other.hit.components, *ours.hit.components}):
        values = [place.hit.components.get(name, 0.0) for place in places if place.candidate]
        spread = max(values) - min(values)
        lead = other.hit.components.get(name, 0.0) - ours.hit.components.get(name, 0.0)
        if lead > 0 and spread > 0:
            leads[name] = lead / spread
    if not leads or other.hit.score == ours.hit.score:
        return Rival(other, None)
    name = max(leads, key=lambda component: leads[component])
    return Rival(other, name, other.hit.components.get(name, 0.0), ours.hit.components.get(name, 0.0))

"""Two strategies side by side on one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopbench.eval.explain.answer import Placed
from hopbench.eval.explain.examine import Examiner
from hopbench.eval.explain.fates import Fate


@dataclass(frozen=True, slots=True)
class Versus:
    """Fates of the gold passages under both, and the hits that only one has, each with its fate under the other."""

    gold: Sequence[tuple[Fate, Fate]]
    only_first: Sequence[tuple[Placed, Fate]]
    only_second: Sequence[tuple[Placed, Fate]]


def versus(first: Examiner, second: Examiner, gold: Sequence[str]) -> Versus:
    """Compare what both strategies have in their top k, which must be the same k."""
    return Versus(
        [(first.fate(passage), second.fate(passage)) for passage in gold],
        _only(first, second),
        _only(second, first),
    )


def _only(having: Examiner, lacking: Examiner) -> list[tuple[Placed, Fate]]:
    there = {place.passage for place in lacking.answer.places[: lacking.top]}
    missing = [place for place in having.answer.places[: having.top] if place.passage not in there]
    return [(place, lacking.fate(place.passage)) for place in missing]

"""Each label's scores over a benchmark's nightly runs, with intervals."""

from __future__ import annotations

from hopbench.flows.nights.history import nights
from hopbench.flows.nights.points import Point, points_of
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, UnknownNameError


def history(benchmark: str, home: Home, label: str | None = None) -> list[Point]:
    """The points of a benchmark's labels, oldest night first, then by label.

    Raises
    ------
    UnknownNameError
        For a benchmark without nights, or a label that none of them has.
    InputError
        When there are no nightly records.
    """
    kept = nights(home.nights)
    if not kept:
        raise InputError(f"no night is kept in {home.nights} yet: hopbench nightly makes one")
    named = [night for night in reversed(kept) if night.content["benchmark"].get("name") == benchmark]
    if not named:
        raise UnknownNameError("benchmark with nights", benchmark, {str(n.content["benchmark"]["name"]) for n in kept})
    labels = {name for night in named for name in night.labels}
    if label is not None and label not in labels:
        raise UnknownNameError(f"label in the nights of {benchmark}", label, labels)
    return [point for night in named for point in points_of(night, label)]

"""Draws drafts of questions from a corpus's evidence, type by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from hopbench.eval.synthesize.chains import Chains
from hopbench.eval.synthesize.comparisons import Comparisons
from hopbench.eval.synthesize.draft import Draft
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.intersections import Intersections
from hopbench.eval.synthesize.steps import Steps

TWO_STEPS = 0.85  # of the compositional questions; the others take three
TRIES = 60


class Paths:
    """Drafts of questions from a corpus; equal seeds give equal drafts."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence = evidence
        steps = Steps(evidence, rng)
        chains, comparisons = Chains(evidence, steps, rng), Comparisons(evidence, rng)
        self._makers: Mapping[str, Callable[[], Draft | None]] = {
            "bridge": lambda: chains.draw("bridge", 1),
            "compositional": lambda: chains.draw("compositional", 2 if rng.random() < TWO_STEPS else 3),
            "intersection": Intersections(evidence, steps, rng).draw,
            "comparison": comparisons.draw,
            "bridge-comparison": comparisons.draw_by_bridges,
        }

    def draw(self, type: str) -> Draft | None:
        """A draft of a type; None where `TRIES` in a row came to nothing."""
        drafts = (self._makers[type]() for _ in range(TRIES))
        return next((draft for draft in drafts if draft is not None and self._sound(draft)), None)

    def _sound(self, draft: Draft) -> bool:
        return not self._evidence.same_passage(draft.gold)

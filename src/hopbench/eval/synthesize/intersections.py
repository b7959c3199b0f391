"""Drafts of questions for what two passages both mention."""

from __future__ import annotations

from random import Random

from hopbench.eval.synthesize.context import Context
from hopbench.eval.synthesize.draft import Clue, Draft, around
from hopbench.eval.synthesize.evidence import Evidence, Mention
from hopbench.eval.synthesize.steps import Steps


class Intersections:
    """Drafts over shared entities; equal seeds give equal drafts."""

    def __init__(self, evidence: Evidence, steps: Steps, rng: Random) -> None:
        self._evidence, self._steps, self._rng = evidence, steps, rng
        self._context = Context(evidence, rng)

    def draw(self) -> Draft | None:
        """What two passages have to say of a third thing: it is the answer."""
        step = self._steps.over_shared()
        if step is None or step.met is None:
            return None
        unsaid = self._evidence.name_words(step.entity)
        sides = [self._side(mention, unsaid, named) for mention, named in ((step.source, 0.8), (step.met, 0.3))]
        if not all(sides):
            return None
        places = [(mention.chunk, number) for mention in (step.source, step.met) for number in (mention.sentence, 1)]
        context = self._context.names(places, unsaid)
        parts = (self._rng.choice(("Who", "What", "Which")), *sides[0], "and", *sides[1], *context)
        gold = (step.source.chunk, step.target)
        name = self._evidence.name(step.entity)
        return Draft("intersection", gold, (step,), parts, unsaid, name, (step.met.chunk, step.met.sentence))

    def _side(self, mention: Mention, unsaid: frozenset[str], named: float) -> list[str | Clue]:
        clue = around(self._evidence, mention, unsaid, "asked")
        title = self._evidence.title(mention.chunk)
        if not clue.words:
            return []
        if not title or self._evidence.title_words(mention.chunk) & unsaid or self._rng.random() >= named:
            return [clue]
        return [clue, "of", title]

"""Draws steps through a corpus's evidence: from a passage to what it mentions, or to what mentions the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from random import Random

import numpy as np

from hopbench.eval.synthesize.draft import Step
from hopbench.eval.synthesize.evidence import Evidence, Link

SHARED_STEP = 0.3  # how often a step leads over a shared entity where titles would do too


class Steps:
    """Steps of paths; equal seeds give equal steps."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng

    def first(self) -> Step | None:
        """A step to begin with; None where the draw came to nothing."""
        evidence, rng = self._evidence, self._rng
        if len(evidence.links) and (not len(evidence.shared) or rng.random() >= SHARED_STEP):
            return over_title(self._telling(evidence.links_from(rng.choice(self._linked))))
        return self.over_shared()

    @cached_property
    def _linked(self) -> Sequence[int]:
        """The chunks that links leave, so that each counts the same, however many do."""
        return np.flatnonzero(np.diff(self._evidence.links_of)).tolist()

    def _telling(self, links: Sequence[Link]) -> Link:
        """One of a chunk's links; early ones and rare names say most of what it is about."""
        frequency = self._evidence.corpus.graph.frequency
        weights = [1.0 / ((1 + place) * math.sqrt(frequency[link.mention.entity])) for place, link in enumerate(links)]
        return self._rng.choices(links, weights)[0]

    def over_shared(self) -> Step | None:
        """A step over an entity that both passages mention."""
        if not len(self._evidence.shared):
            return None
        entity = int(self._evidence.shared[self._rng.randrange(len(self._evidence.shared))])
        first, second = self._rng.sample(self._evidence.mentions_of(entity), 2)
        return Step(first, second.chunk, second) if first.chunk != second.chunk else None

    def next(self, path: Sequence[Step]) -> Step | None:
        """A step that leaves where the path has come to, over another entity."""
        seen = {path[0].source.chunk, *(step.target for step in path)}
        entities = {step.entity for step in path}
        links = [one for one in self._evidence.links_from(path[-1].target) if one.target not in seen]
        links = [one for one in links if one.mention.entity not in entities]
        return over_title(self._telling(links)) if links else None


def over_title(link: Link) -> Step:
    """A step from a mention to the passage that it titles."""
    return Step(link.mention, link.target)


def hidden(evidence: Evidence, step: Step) -> frozenset[str]:
    """The words that would name a step's bridge."""
    own = evidence.title_words(step.target) if step.met is None else frozenset()
    return evidence.name_words(step.entity) | own

"""Draws steps through a corpus's evidence: from a passage to what it mentions, or to what mentions the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from random import Random

import numpy as np

from hopbench.eval.synthesize.draft import Step
from hopbench.eval.synthesize.evidence import Evidence, Link
from hopbench.retrieval.strategies.hoprank.words import Numbers

SHARED_STEP = 0.3  # how often a step leads over a shared entity where titles would do too
RARE = 20  # passages at most that mention an entity over which two of them are joined


class Steps:
    """Steps of paths; equal seeds give equal steps."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng

    def first(self) -> Step | None:
        """A step to begin with; None where the draw came to nothing."""
        if self._linked and (not len(self._rare) or self._rng.random() >= SHARED_STEP):
            return self._over_title(self._evidence.links_from(self._rng.choice(self._linked)))
        return self.over_shared()

    @cached_property
    def _linked(self) -> Sequence[int]:
        """The chunks that links leave, so that each counts the same, however many do."""
        return [int(chunk) for chunk in np.flatnonzero(np.diff(self._evidence.links_of))]

    def _over_title(self, links: Sequence[Link]) -> Step:
        """A step over one of a chunk's links; early ones and rare names say most of what it is about."""
        frequency = self._evidence.corpus.graph.frequency
        weights = [1.0 / ((1 + place) * math.sqrt(frequency[link.mention.entity])) for place, link in enumerate(links)]
        link = self._rng.choices(links, weights)[0]
        return Step(link.mention, self._rng.choice(link.targets))

    def over_shared(self) -> Step | None:
        """A step over an entity that both passages mention, of those that few mention."""
        if not len(self._rare):
            return None
        first, second = self._rng.sample(self._evidence.mentions_of(int(self._rng.choice(self._rare))), 2)
        return Step(first, second.chunk, second) if first.chunk != second.chunk else None

    @cached_property
    def _rare(self) -> Numbers:
        return self._evidence.shared(RARE)

    def next(self, path: Sequence[Step]) -> Step | None:
        """A step that leaves where the path has come to, over another entity."""
        start = path[0].source.chunk
        entities = {self._evidence.titled_by(start), *(step.entity for step in path)}
        links = [link for link in self._evidence.links_from(path[-1].target) if link.mention.entity not in entities]
        links = [link for link in links if start not in link.targets]
        return self._over_title(links) if links else None


def hidden(evidence: Evidence, step: Step) -> frozenset[str]:
    """The words that would name a step's bridge."""
    own = evidence.title_words(step.target) if step.met is None else frozenset()
    return evidence.name_words(step.entity) | own

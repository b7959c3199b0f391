"""Names that a question quotes beside what it asks: "the *South Korean* series", "published in *2015*"."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hopbench.eval.synthesize.asked import name_spans
from hopbench.eval.synthesize.draft import CONTEXT, Clue, content
from hopbench.eval.synthesize.evidence import Evidence

NAMES, MOST_NAMES = 1.6, 3  # a mean, where there is most to quote; and at most


class Context:
    """Draws names from sentences of the evidence; equal seeds give equal names."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng

    def names(self, places: Iterable[tuple[int, int]], unsaid: frozenset[str]) -> list[Clue]:
        """Some names of the sentences at `places` (chunk, sentence), none with a word of `unsaid`."""
        wanted = sum(self._rng.random() < NAMES * self._evidence.room / MOST_NAMES for _ in range(MOST_NAMES))
        if not wanted:
            return []
        offered: dict[tuple[str, ...], Clue] = {}
        for chunk, sentence in dict.fromkeys(places):
            if sentence >= len(self._evidence.sentences(chunk)):
                continue
            words = self._evidence.words(chunk, sentence)
            for start, end in name_spans(words):
                said = words[start:end]
                if content(said, frozenset()) and not {word.folded for word in said} & unsaid:
                    clue = Clue(CONTEXT, chunk, sentence, tuple(said))
                    offered.setdefault(tuple(word.folded for word in said), clue)
        return self._rng.sample(list(offered.values()), min(wanted, len(offered)))

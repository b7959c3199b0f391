"""A question before it is worded: the passages it needs, what it asks for, and what it may quote of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

import numpy as np

from hopbench.eval.synthesize._evidence import Evidence, Link, Mention
from hopbench.retrieval.strategies.hoprank.words import Numbers
from hopbench.retrieval.text import STOP_WORDS, Token

BEFORE, AFTER = 7, 4  # words around a mention that tell how it is related to what its passage is about
MIN_LETTERS = 3  # letters
CONTEXT = "context"  # the role of names that a question quotes whole
SHARED_STEP = 0.3  # how often a step leads over a shared entity where titles would do too
RARE = 20  # passages at most that mention an entity over which two of them are joined
FIRST = 0.5  # how often the first sentence, which says what a passage is about, is preferred
NEARBY = 0.6  # how often only the words around the answer are quoted
MAX_ANSWER_WORDS = 6  # words
_YEAR = re.compile(r"1[0-9]\d\d|20\d\d")
_MONTHS = frozenset("january february march april may june july august september october november december".split())
_OPEN = ("What", "Which", "Who", "Where")
NAMES, MAX_NAMES = 1.6, 3  # a mean, where there is most to quote; and at most


@dataclass(frozen=True, slots=True)
class Clue:
    """Words of one sentence of a gold passage that the question may quote, in their order; `role` says for what."""

    role: str
    chunk: int
    sentence: int
    words: tuple[Token, ...]


class Step(NamedTuple):
    """One step of a path: `source` mentions what `target` is titled by, or what `target` mentions too (`met`)."""

    source: Mention
    target: int
    met: Mention | None = None

    @property
    def entity(self) -> int:
        """The bridge."""
        return self.source.entity


@dataclass(frozen=True, slots=True)
class Draft:
    """`parts` are the question's text and clues in order; `hidden` are words that would give its bridges away.

    `gold` are the chunks it needs, in the order of the path; `answered` is the chunk and sentence of the answer, which
    is empty for a comparison: rules cannot tell which of two is older.
    """

    type: str
    gold: tuple[int, ...]
    steps: tuple[Step, ...]
    parts: tuple[str | Clue, ...]
    hidden: frozenset[str]
    answer: str
    answered: tuple[int, int]

    @property
    def clues(self) -> list[Clue]:
        """The parts that quote."""
        return [part for part in self.parts if isinstance(part, Clue)]


def content(words: list[Token], banned: frozenset[str]) -> list[Token]:
    """Select the content words that are not banned."""
    unwanted = banned | STOP_WORDS
    return [word for word in words if len(word.folded) >= MIN_LETTERS and word.folded not in unwanted]


def lower_case(words: list[Token], banned: frozenset[str]) -> tuple[Token, ...]:
    """Select the content words that belong to no name."""
    return tuple(word for word in content(words, banned) if not word.capital)


def around(evidence: Evidence, mention: Mention, banned: frozenset[str], role: str = "relation") -> Clue:
    """Collect the words around a mention."""
    words = evidence.words(mention.chunk, mention.sentence)
    near = words[max(0, mention.start - BEFORE) : mention.start] + words[mention.end : mention.end + AFTER]
    return Clue(role, mention.chunk, mention.sentence, lower_case(near, banned))


class Steps:
    """Steps of paths; equal seeds give equal steps."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng

    def first(self) -> Step | None:
        """Draw a first step; None where the draw fails."""
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
        """Draw a step from the path's end, over another entity."""
        start = path[0].source.chunk
        entities = {self._evidence.titled_by(start), *(step.entity for step in path)}
        links = [link for link in self._evidence.links_from(path[-1].target) if link.mention.entity not in entities]
        links = [link for link in links if start not in link.targets]
        return self._over_title(links) if links else None


def hidden(evidence: Evidence, step: Step) -> frozenset[str]:
    """Collect the words that would name a step's bridge."""
    own = evidence.title_words(step.target) if step.met is None else frozenset()
    return evidence.name_words(step.entity) | own


class Asked(NamedTuple):
    """A question's first words, the clue about its answer, a name that stands with it, and the answer."""

    opening: str
    clue: Clue
    name: Clue
    answer: str


def asked_of(evidence: Evidence, step: Step, banned: frozenset[str], rng: Random) -> Asked | None:
    """Draw something to ask about a path's last passage; None where no sentence names anything."""
    if step.met is not None:
        sentences = [step.met.sentence]
    else:
        sentences = list(range(1, len(evidence.sentences(step.target))))
        rng.shuffle(sentences)
        if rng.random() < FIRST:
            sentences.sort(key=lambda number: number > 1)
    for number in sentences:
        words = evidence.words(step.target, number)
        spans = [span for span in name_spans(words) if not {word.folded for word in words[slice(*span)]} & banned]
        if not spans:
            continue
        start, end = rng.choice(spans)
        answer = words[start:end]
        unwanted = banned | {word.folded for word in answer}
        near = lower_case(words[max(0, start - BEFORE) : start] + words[end : end + AFTER], unwanted)
        about = near if len(near) > 1 and rng.random() < NEARBY else lower_case(words, unwanted)
        if about:
            clue = Clue("asked", step.target, number, about)
            names = [words[slice(*span)] for span in spans if span != (start, end)]
            beside = rng.choice(names) if names else []
            name = Clue("name", step.target, number, tuple(content(beside, unwanted)))
            return Asked(_opening(answer, rng), clue, name, " ".join(word.text for word in answer))
    return None


def name_spans(words: Sequence[Token]) -> list[tuple[int, int]]:
    """Find capitalised words and numbers that do not begin the sentence, as (start, end)."""
    spans: list[tuple[int, int]] = []
    start = 1
    while start < len(words):
        end = start
        while end < len(words) and words[end].capital and (end == start or not words[end].breaks):
            end += 1
        if start < end <= start + MAX_ANSWER_WORDS:
            spans.append((start, end))
        start = max(end, start + 1)
    return spans


def _opening(answer: Sequence[Token], rng: Random) -> str:
    """When, How many, or a word that leaves it open."""
    if any(word.folded in _MONTHS or _YEAR.fullmatch(word.text) for word in answer):
        return "When"
    return "How many" if answer[0].text[0].isdigit() else rng.choice(_OPEN)


class Context:
    """Draws names from sentences of the evidence; equal seeds give equal names."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng

    def names(self, places: Iterable[tuple[int, int]], unsaid: frozenset[str]) -> list[Clue]:
        """Draw names from the sentences at `places` (chunk, sentence), none with a word of `unsaid`."""
        wanted = sum(self._rng.random() < NAMES * self._evidence.room / MAX_NAMES for _ in range(MAX_NAMES))
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

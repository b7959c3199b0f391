"""Draw questions before they are worded: the passages each needs, what it asks for, and what it may quote of each.

A draft follows a path, compares two things, or is about what two passages share.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

import numpy as np

from hopbench.eval.synthesize._evidence import Evidence, Link, Mention
from hopbench.retrieval.strategies.hoprank.words import Numbers
from hopbench.retrieval.text import STOP_WORDS, Token, tokens

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
DESCRIBED = 0.55  # per share of chunks with a kind beyond `ONE_KIND`: how often a first passage is described, not named
KIND_NAMED = 0.4  # how often a name follows its kind: "the film X"
BRIDGE_KIND = 0.5  # how often a bridge is called by its kind: "the actor … of X"
NAMES_QUOTED = 0.4  # how often a description has a name of its sentence; always where the passage has none itself
TWO_STEPS = 0.85  # of the compositional questions; the others take three
TRIES = 60


@dataclass(frozen=True, slots=True)
class Clue:
    """Words of one sentence of a gold passage that the question may quote, in their order; `role` says for what."""

    role: str
    chunk: int
    sentence: int
    words: tuple[Token, ...]


class Told(NamedTuple):
    """A sentence of a gold passage that a question rests on, and what it says (a clue's role)."""

    role: str
    chunk: int
    text: str


class Step(NamedTuple):
    """One step of a path: `source` mentions what `target` is titled by, or what `target` mentions too (`met`).

    `over` are the words of the hyperlink that leads from one to the other; then no place and no entity is known.
    """

    source: Mention
    target: int
    met: Mention | None = None
    over: str = ""

    @property
    def entity(self) -> int:
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
    sentences: tuple[Told, ...] = ()

    @property
    def clues(self) -> list[Clue]:
        return [part for part in self.parts if isinstance(part, Clue)]

    def told(self, evidence: Evidence) -> Sequence[Told]:
        """List the sentences that the question rests on, those of its clues or of a hyperlink."""
        found = [
            Told(one.role, one.chunk, evidence.sentences(one.chunk)[one.sentence]) for one in self.clues if one.words
        ]
        return [*self.sentences, *found]


def content(words: list[Token], banned: frozenset[str]) -> list[Token]:
    unwanted = banned | STOP_WORDS
    return [word for word in words if len(word.folded) >= MIN_LETTERS and word.folded not in unwanted]


def lower_case(words: list[Token], banned: frozenset[str]) -> tuple[Token, ...]:
    """Select the content words that belong to no name."""
    return tuple(word for word in content(words, banned) if not word.capital)


def around(evidence: Evidence, mention: Mention, banned: frozenset[str], role: str = "relation") -> Clue:
    words = evidence.words(mention.chunk, mention.sentence)
    near = words[max(0, mention.start - BEFORE) : mention.start] + words[mention.end : mention.end + AFTER]
    return Clue(role, mention.chunk, mention.sentence, lower_case(near, banned))


def hidden(evidence: Evidence, step: Step) -> frozenset[str]:
    """Collect the words that would name a step's bridge."""
    own = evidence.title_words(step.target) if step.met is None else frozenset()
    return evidence.name_words(step.entity) | own


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


class Drafts:
    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng
        self._makers: Mapping[str, Callable[[], Draft | None]] = {
            "bridge": lambda: self._chain("bridge", 1),
            "compositional": lambda: self._chain("compositional", 2 if rng.random() < TWO_STEPS else 3),
            "intersection": self._intersection,
            "comparison": self._comparison,
            "bridge-comparison": self._bridge_comparison,
        }

    def draw(self, type: str) -> Draft | None:
        """Draw a draft of a type; None where `TRIES` in a row came to nothing."""
        drafts = (self._makers[type]() for _ in range(TRIES))
        return next((one for one in drafts if one is not None and not self._evidence.same_passage(one.gold)), None)

    def _first_step(self) -> Step | None:
        if self._linked and (not len(self._rare) or self._rng.random() >= SHARED_STEP):
            return self._over_title(self._evidence.links_from(self._rng.choice(self._linked)))
        return self._over_shared()

    @cached_property
    def _linked(self) -> Sequence[int]:
        # Each chunk counts the same, however many links leave it.
        return [int(chunk) for chunk in np.flatnonzero(np.diff(self._evidence.links_of))]

    def _over_title(self, links: Sequence[Link]) -> Step:
        """A step over one of a chunk's links; early ones and rare names say most of what it is about."""
        frequency = self._evidence.corpus.graph.frequency
        weights = [1.0 / ((1 + place) * math.sqrt(frequency[link.mention.entity])) for place, link in enumerate(links)]
        link = self._rng.choices(links, weights)[0]
        return Step(link.mention, self._rng.choice(link.targets))

    def _over_shared(self) -> Step | None:
        """A step over an entity that both passages mention, of those that few mention."""
        if not len(self._rare):
            return None
        first, second = self._rng.sample(self._evidence.mentions_of(int(self._rng.choice(self._rare))), 2)
        return Step(first, second.chunk, second) if first.chunk != second.chunk else None

    @cached_property
    def _rare(self) -> Numbers:
        return self._evidence.shared(RARE)

    def _next_step(self, path: Sequence[Step]) -> Step | None:
        """Draw a step from the path's end, over another entity."""
        start = path[0].source.chunk
        entities = {self._evidence.titled_by(start), *(step.entity for step in path)}
        links = [link for link in self._evidence.links_from(path[-1].target) if link.mention.entity not in entities]
        links = [link for link in links if start not in link.targets]
        return self._over_title(links) if links else None

    def _chain(self, type: str, hops: int) -> Draft | None:
        first = self._first_step()
        path = [first] if first else []
        while path and len(path) < hops:
            step = self._next_step(path)
            if step is None:
                return None
            path.append(step)
        if not path:
            return None
        evidence = self._evidence
        gold = (path[0].source.chunk, *(step.target for step in path))
        unsaid = frozenset().union(*(hidden(evidence, step) for step in path))
        banned = unsaid | evidence.title_words(gold[0])
        asked = self._asked(path[-1], banned)
        start = self._start(gold[0], unsaid)
        if asked is None or start is None:
            return None
        opening, clue, name, answer = asked
        relations: list[str | Clue] = []
        for step in reversed(path):  # "of the actor starring …": how a bridge is called
            kind = evidence.kinds.get(step.target, "") if step.met is None else ""
            named = kind if kind not in banned and self._rng.random() < BRIDGE_KIND else ""
            relations += ["of the", named, around(evidence, step.source, banned)]
        places = [(gold[0], path[0].source.sentence), (gold[0], 1), (clue.chunk, clue.sentence)]
        places += [(step.target, 1) for step in path]
        context = self._names(places, banned | frozenset(word.folded for word in tokens(answer)))
        parts = (opening, clue, name, *relations, *start, *context)
        return Draft(type, gold, tuple(path), parts, unsaid, answer, (clue.chunk, clue.sentence))

    def _asked(self, step: Step, banned: frozenset[str]) -> tuple[str, Clue, Clue, str] | None:
        """Opening, clue about the answer, a name near it, and the answer; None where no sentence names anything."""
        evidence, rng = self._evidence, self._rng
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
                others = [words[slice(*span)] for span in spans if span != (start, end)]
                name = Clue("name", step.target, number, tuple(content(rng.choice(others) if others else [], unwanted)))
                text = " ".join(word.text for word in answer)
                return self._opening(answer), Clue("asked", step.target, number, about), name, text
        return None

    def _opening(self, answer: Sequence[Token]) -> str:
        if any(word.folded in _MONTHS or _YEAR.fullmatch(word.text) for word in answer):
            return "When"
        return "How many" if answer[0].text[0].isdigit() else self._rng.choice(_OPEN)

    def _names(self, places: Iterable[tuple[int, int]], unsaid: frozenset[str]) -> list[Clue]:
        """Names from the sentences at `places` (chunk, sentence), none with a word of `unsaid`."""
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

    def _start(self, chunk: int, unsaid: frozenset[str]) -> list[str | Clue] | None:
        """The path's first passage, by name or, always without a title, by words and a name of a sentence of it."""
        evidence, rng = self._evidence, self._rng
        title = evidence.title(chunk)
        if title and rng.random() >= DESCRIBED * evidence.alike:
            if evidence.title_words(chunk) & unsaid:
                return None
            kind = evidence.kinds.get(chunk)
            return ["of", f"the {kind} {title}" if kind and rng.random() < KIND_NAMED else title]
        banned = unsaid | evidence.title_words(chunk)
        count = len(evidence.sentences(chunk)) - 1
        if not count:
            return None
        number = 1 if rng.random() < 0.5 else rng.randint(1, count)
        words = evidence.words(chunk, number)
        common = lower_case(words, banned)
        if len(common) < 2:
            return None
        start: list[str | Clue] = ["of the", Clue("description", chunk, number, common)]
        named = content(words, banned)
        capitals = [index for index, word in enumerate(named) if word.capital]
        if capitals and rng.random() < (NAMES_QUOTED if title else 1.0):
            chosen = rng.choice(capitals)
            start.append(" ".join(word.text for word in named[chosen : chosen + 2] if word.capital))
        return start

    @cached_property
    def _compared(self) -> Sequence[int]:
        return [chunk for chunks in self._evidence.chunks_of_kind.values() for chunk in chunks]

    def _comparison(self) -> Draft | None:
        evidence, rng = self._evidence, self._rng
        if not self._compared:
            return None
        first = rng.choice(self._compared)
        kind = evidence.kinds[first]
        second = rng.choice(evidence.chunks_of_kind[kind])
        one, other = evidence.title(first), evidence.title(second)
        if not one or not other or one == other:
            return None
        common = self._common(first, second, evidence.title_words(first) | evidence.title_words(second) | {kind})
        forms: Sequence[tuple[str | Clue, ...]] = (
            (f"Which {kind}", common, f"first, {one} or {other}"),
            (f"Are {one} and {other} both", common, "from the same country"),
            ("Who is older", common, f", {one} or {other}"),
        )
        return Draft("comparison", (first, second), (), rng.choice(forms), frozenset(), "", (first, 1))

    def _common(self, first: int, second: int, banned: frozenset[str]) -> Clue:
        words = [
            self._evidence.words(chunk, 1) if len(self._evidence.sentences(chunk)) > 1 else []
            for chunk in (first, second)
        ]
        known = {word.folded for word in content(words[1], banned)}
        both = [word for word in lower_case(words[0], banned) if word.folded in known]
        return Clue("common", first, 1, tuple(both))

    @cached_property
    def _by_kinds(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """(kind of the source, kind of the target) → ids of links."""
        groups: dict[tuple[str, str], list[int]] = {}
        kinds = self._evidence.kinds
        for number in map(int, self._evidence.links):
            mention, targets = self._evidence.link(number)
            if mention.chunk in kinds and targets[0] in kinds and len(targets) == 1:
                groups.setdefault((kinds[mention.chunk], kinds[targets[0]]), []).append(number)
        return {pair: links for pair, links in groups.items() if len(links) > 1}

    def _bridge_comparison(self) -> Draft | None:
        evidence, rng = self._evidence, self._rng
        if not self._by_kinds:
            return None
        kinds = rng.choices(list(self._by_kinds), [len(group) for group in self._by_kinds.values()])[0]
        links = [evidence.link(number) for number in rng.sample(self._by_kinds[kinds], 2)]
        steps = tuple(Step(link.mention, link.targets[0]) for link in links)
        sources = [step.source.chunk for step in steps]
        gold = (*sources, *(step.target for step in steps))
        unsaid = hidden(evidence, steps[0]) | hidden(evidence, steps[1])
        titles = evidence.title_words(sources[0]) | evidence.title_words(sources[1])
        if len(set(gold)) < len(gold) or titles & unsaid:
            return None
        banned = unsaid | titles
        relation = around(evidence, steps[0].source, banned)
        common = self._common(steps[0].target, steps[1].target, banned)
        first, second = evidence.title(sources[0]), evidence.title(sources[1])
        if not first or not second:
            return None
        bridge = kinds[1] if rng.random() < BRIDGE_KIND and kinds[1] not in banned else ""
        forms: Sequence[tuple[str | Clue, ...]] = (
            (f"Which {kinds[0]} has the", bridge, relation, "who is", common, f"first, {first} or {second}"),
            ("Do the", relation, f"of {kinds[0]} {first} and of {kinds[0]} {second} have the same", common),
        )
        return Draft("bridge-comparison", gold, steps, rng.choice(forms), unsaid, "", (gold[2], 1))

    def _intersection(self) -> Draft | None:
        """What two passages have to say of a third thing: it is the answer."""
        evidence, rng = self._evidence, self._rng
        step = self._over_shared()
        if step is None or step.met is None:
            return None
        unsaid = evidence.name_words(step.entity)
        sides: list[list[str | Clue]] = []
        for mention, often in ((step.source, 0.8), (step.met, 0.3)):
            clue, title = around(evidence, mention, unsaid, "asked"), evidence.title(mention.chunk)
            sayable = clue.words and title and not evidence.title_words(mention.chunk) & unsaid
            sides.append([clue, "of", title] if sayable and rng.random() < often else [clue] if clue.words else [])
        if not all(sides):
            return None
        places = [(mention.chunk, number) for mention in (step.source, step.met) for number in (mention.sentence, 1)]
        context = self._names(places, unsaid)
        parts = (rng.choice(("Who", "What", "Which")), *sides[0], "and", *sides[1], *context)
        gold = (step.source.chunk, step.target)
        answered = (step.met.chunk, step.met.sentence)
        return Draft("intersection", gold, (step,), parts, unsaid, evidence.name(step.entity), answered)

"""Draws paths through a corpus's evidence and drafts of questions about them, type by type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random

import numpy as np

from hopbench.eval.synthesize.asked import asked_of
from hopbench.eval.synthesize.draft import Clue, Draft, Step, around, content, lower_case
from hopbench.eval.synthesize.evidence import Evidence, Link, Mention
from hopbench.retrieval.text import Token

DESCRIBED = 0.55  # per share of chunks with a kind beyond `ONE_KIND`: how often a first passage is described, not named
KIND_NAMED = 0.4  # how often a name follows its kind: "the film X"
BRIDGE_KIND = 0.5  # how often a bridge is called by its kind: "the actor … of X"
NAMES_QUOTED = 0.4  # how often a description has a name of its sentence
SHARED_STEP = 0.3  # how often a step leads over a shared entity where titles would do too
TRIES = 60


class Paths:
    """Drafts of questions from a corpus; equal seeds give equal drafts."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng
        self._makers: Mapping[str, Callable[[], Draft | None]] = {
            "bridge": lambda: self._chain("bridge", 1),
            "compositional": lambda: self._chain("compositional", 2 if rng.random() < 0.65 else 3),
            "intersection": self._intersection,
            "comparison": self._comparison,
            "bridge-comparison": self._bridge_comparison,
        }

    @property
    def types(self) -> Sequence[str]:
        """The types of questions there are."""
        return list(self._makers)

    def draw(self, type: str) -> Draft | None:
        """A draft of a type; None where `TRIES` in a row came to nothing."""
        drafts = (self._makers[type]() for _ in range(TRIES))
        return next((draft for draft in drafts if draft is not None and self._sound(draft)), None)

    def _sound(self, draft: Draft) -> bool:
        return not self._evidence.same_passage(draft.gold)

    # Steps

    def _first_step(self) -> Step | None:
        evidence, rng = self._evidence, self._rng
        if len(evidence.links) and (not len(evidence.shared) or rng.random() >= SHARED_STEP):
            return _over_title(self._telling(evidence.links_from(rng.choice(self._linked))))
        return self._over_shared()

    @cached_property
    def _linked(self) -> Sequence[int]:
        """The chunks that links leave, so that each counts the same, however many do."""
        return np.flatnonzero(np.diff(self._evidence.links_of)).tolist()

    def _telling(self, links: Sequence[Link]) -> Link:
        """One of a chunk's links; early ones and rare names say most of what it is about."""
        frequency = self._evidence.corpus.graph.frequency
        weights = [1.0 / ((1 + place) * math.sqrt(frequency[link.mention.entity])) for place, link in enumerate(links)]
        return self._rng.choices(links, weights)[0]

    def _over_shared(self) -> Step | None:
        if not len(self._evidence.shared):
            return None
        entity = int(self._evidence.shared[self._rng.randrange(len(self._evidence.shared))])
        first, second = self._rng.sample(self._evidence.mentions_of(entity), 2)
        return Step(first, second.chunk, second) if first.chunk != second.chunk else None

    def _next_step(self, path: Sequence[Step]) -> Step | None:
        """A step that leaves where the path has come to, over another entity."""
        seen = {path[0].source.chunk, *(step.target for step in path)}
        entities = {step.entity for step in path}
        links = [one for one in self._evidence.links_from(path[-1].target) if one.target not in seen]
        links = [one for one in links if one.mention.entity not in entities]
        return _over_title(self._telling(links)) if links else None

    # Types

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
        hidden = frozenset().union(*(self._hidden(step) for step in path))
        banned = hidden | evidence.title_words(gold[0])
        asked = asked_of(evidence, path[-1], banned, self._rng)
        start = self._start(gold[0], hidden)
        if asked is None or start is None:
            return None
        relations = [part for step in reversed(path) for part in self._relation(step, banned)]
        parts = (asked.opening, asked.clue, asked.name, *relations, *start)
        answered = (asked.clue.chunk, asked.clue.sentence)
        return Draft(type, gold, tuple(path), parts, hidden, asked.answer, answered)

    def _relation(self, step: Step, banned: frozenset[str]) -> list[str | Clue]:
        """ "of the actor starring …": how a bridge is called."""
        kind = self._evidence.kinds.get(step.target, "") if step.met is None else ""
        named = kind if kind not in banned and self._rng.random() < BRIDGE_KIND else ""
        return ["of the", named, around(self._evidence, step.source, banned)]

    def _start(self, chunk: int, hidden: frozenset[str]) -> list[str | Clue] | None:
        """The path's first passage, by name or, always without a title, by what it says."""
        title = self._evidence.title(chunk)
        if title and self._rng.random() >= DESCRIBED * self._evidence.alike:
            return None if self._evidence.title_words(chunk) & hidden else ["of", self._named(chunk)]
        described = self._description(chunk, hidden | self._evidence.title_words(chunk))
        return ["of the", *described] if described else None

    def _named(self, chunk: int) -> str:
        kind = self._evidence.kinds.get(chunk)
        title = self._evidence.title(chunk)
        return f"the {kind} {title}" if kind and self._rng.random() < KIND_NAMED else title

    def _description(self, chunk: int, banned: frozenset[str]) -> list[str | Clue]:
        """Words of a sentence that call a passage to mind, now and then with a name; empty where it says too little."""
        count = len(self._evidence.sentences(chunk)) - 1
        if not count:
            return []
        number = 1 if self._rng.random() < 0.5 else self._rng.randint(1, count)
        words = self._evidence.words(chunk, number)
        common = lower_case(words, banned)
        if len(common) < 2:
            return []
        return [Clue("description", chunk, number, common), *self._quoted_name(content(words, banned))]

    def _quoted_name(self, words: Sequence[Token]) -> list[str]:
        names = [index for index, word in enumerate(words) if word.capital]
        if not names or self._rng.random() >= NAMES_QUOTED:
            return []
        chosen = self._rng.choice(names)
        return [" ".join(word.text for word in words[chosen : chosen + 2] if word.capital)]

    def _hidden(self, step: Step) -> frozenset[str]:
        own = self._evidence.title_words(step.target) if step.met is None else frozenset()
        return self._evidence.name_words(step.entity) | own

    def _intersection(self) -> Draft | None:
        """What two passages have to say of a third thing: it is the answer."""
        step = self._over_shared()
        if step is None or step.met is None:
            return None
        hidden = self._evidence.name_words(step.entity)
        sides = [self._side(mention, hidden, named) for mention, named in ((step.source, 0.8), (step.met, 0.3))]
        if not all(sides):
            return None
        parts = (self._rng.choice(("Who", "What", "Which")), *sides[0], "and", *sides[1])
        gold = (step.source.chunk, step.target)
        name = self._evidence.name(step.entity)
        return Draft("intersection", gold, (step,), parts, hidden, name, (step.met.chunk, step.met.sentence))

    def _side(self, mention: Mention, hidden: frozenset[str], named: float) -> list[str | Clue]:
        clue = around(self._evidence, mention, hidden, "asked")
        title = self._evidence.title(mention.chunk)
        if not clue.words:
            return []
        if not title or self._evidence.title_words(mention.chunk) & hidden or self._rng.random() >= named:
            return [clue]
        return [clue, "of", title]

    @cached_property
    def _compared(self) -> Sequence[int]:
        return [chunk for chunks in self._evidence.of_kind.values() for chunk in chunks]

    def _comparison(self) -> Draft | None:
        """Two things of one kind, both named."""
        evidence, rng = self._evidence, self._rng
        if not self._compared:
            return None
        first = rng.choice(self._compared)
        kind = evidence.kinds[first]
        second = rng.choice(evidence.of_kind[kind])
        names = evidence.title(first), evidence.title(second)
        if names[0] == names[1]:
            return None
        common = self._common(first, second, evidence.title_words(first) | evidence.title_words(second) | {kind})
        parts = self._compare(kind, common, names)
        return Draft("comparison", (first, second), (), parts, frozenset(), "", (first, 1))

    def _common(self, first: int, second: int, banned: frozenset[str]) -> Clue:
        """What the first sentences of two passages have in common."""
        known = {word.folded for word in content(self._opening_words(second), banned)}
        both = [word for word in lower_case(self._opening_words(first), banned) if word.folded in known]
        return Clue("common", first, 1, tuple(both))

    def _opening_words(self, chunk: int) -> list[Token]:
        return self._evidence.words(chunk, 1) if len(self._evidence.sentences(chunk)) > 1 else []

    def _compare(self, kind: str, common: Clue, names: tuple[str, str]) -> tuple[str | Clue, ...]:
        forms: Sequence[tuple[str | Clue, ...]] = (
            (f"Which {kind}", common, f"first, {names[0]} or {names[1]}"),
            (f"Are {names[0]} and {names[1]} both", common, "from the same country"),
            ("Who is older", common, f", {names[0]} or {names[1]}"),
        )
        return self._rng.choice(forms)

    @cached_property
    def _by_kinds(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """(kind of the source, kind of the target) → numbers of links."""
        groups: dict[tuple[str, str], list[int]] = {}
        kinds = self._evidence.kinds
        for number in map(int, self._evidence.links):
            link = self._evidence.link(number)
            if link.source in kinds and link.target in kinds:
                groups.setdefault((kinds[link.source], kinds[link.target]), []).append(number)
        return {pair: numbers for pair, numbers in groups.items() if len(numbers) > 1}

    def _bridge_comparison(self) -> Draft | None:
        """Two things of one kind, both named, compared by what each leads to."""
        evidence, rng = self._evidence, self._rng
        if not self._by_kinds:
            return None
        kinds = rng.choices(list(self._by_kinds), [len(group) for group in self._by_kinds.values()])[0]
        steps = tuple(_over_title(evidence.link(number)) for number in rng.sample(self._by_kinds[kinds], 2))
        sources = [step.source.chunk for step in steps]
        gold = (*sources, *(step.target for step in steps))
        hidden = self._hidden(steps[0]) | self._hidden(steps[1])
        titles = evidence.title_words(sources[0]) | evidence.title_words(sources[1])
        if len(set(gold)) < len(gold) or titles & hidden:
            return None
        banned = hidden | titles
        relation = around(evidence, steps[0].source, banned)
        common = self._common(steps[0].target, steps[1].target, banned)
        first, second = evidence.title(sources[0]), evidence.title(sources[1])
        bridge = kinds[1] if rng.random() < BRIDGE_KIND and kinds[1] not in banned else ""
        forms: Sequence[tuple[str | Clue, ...]] = (
            (f"Which {kinds[0]} has the", bridge, relation, "who is", common, f"first, {first} or {second}"),
            ("Do the", relation, f"of {kinds[0]} {first} and of {kinds[0]} {second} have the same", common),
        )
        return Draft("bridge-comparison", gold, steps, rng.choice(forms), hidden, "", (gold[2], 1))


def _over_title(link: Link) -> Step:
    return Step(link.mention, link.target)

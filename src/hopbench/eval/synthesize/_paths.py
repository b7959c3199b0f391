"""Draw drafts of questions type by type: along a path, comparing two things, or over a shared entity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random

from hopbench.eval.synthesize._drafts import (
    Clue,
    Context,
    Draft,
    Step,
    Steps,
    around,
    asked_of,
    content,
    hidden,
    lower_case,
)
from hopbench.eval.synthesize._evidence import Evidence, Mention
from hopbench.retrieval.text import Token, tokens

DESCRIBED = 0.55  # per share of chunks with a kind beyond `ONE_KIND`: how often a first passage is described, not named
KIND_NAMED = 0.4  # how often a name follows its kind: "the film X"
BRIDGE_KIND = 0.5  # how often a bridge is called by its kind: "the actor … of X"
NAMES_QUOTED = 0.4  # how often a description has a name of its sentence; always where the passage has none itself
TWO_STEPS = 0.85  # of the compositional questions; the others take three
TRIES = 60


class Chains:
    """Drafts along paths; equal seeds give equal drafts."""

    def __init__(self, evidence: Evidence, steps: Steps, rng: Random) -> None:
        self._evidence, self._steps, self._rng = evidence, steps, rng
        self._context = Context(evidence, rng)

    def draw(self, type: str, hops: int) -> Draft | None:
        """A question about the end of a path of so many steps."""
        first = self._steps.first()
        path = [first] if first else []
        while path and len(path) < hops:
            step = self._steps.next(path)
            if step is None:
                return None
            path.append(step)
        if not path:
            return None
        evidence = self._evidence
        gold = (path[0].source.chunk, *(step.target for step in path))
        unsaid = frozenset().union(*(hidden(evidence, step) for step in path))
        banned = unsaid | evidence.title_words(gold[0])
        asked = asked_of(evidence, path[-1], banned, self._rng)
        start = self._start(gold[0], unsaid)
        if asked is None or start is None:
            return None
        relations = [part for step in reversed(path) for part in self._relation(step, banned)]
        places = [(gold[0], path[0].source.sentence), (gold[0], 1), (asked.clue.chunk, asked.clue.sentence)]
        places += [(step.target, 1) for step in path]
        answer = frozenset(word.folded for word in tokens(asked.answer))
        context = self._context.names(places, banned | answer)
        parts = (asked.opening, asked.clue, asked.name, *relations, *start, *context)
        answered = (asked.clue.chunk, asked.clue.sentence)
        return Draft(type, gold, tuple(path), parts, unsaid, asked.answer, answered)

    def _relation(self, step: Step, banned: frozenset[str]) -> list[str | Clue]:
        """ "of the actor starring …": how a bridge is called."""
        kind = self._evidence.kinds.of_chunk.get(step.target, "") if step.met is None else ""
        named = kind if kind not in banned and self._rng.random() < BRIDGE_KIND else ""
        return ["of the", named, around(self._evidence, step.source, banned)]

    def _start(self, chunk: int, unsaid: frozenset[str]) -> list[str | Clue] | None:
        """The path's first passage, by name or, always without a title, by what it says."""
        title = self._evidence.title(chunk)
        if title and self._rng.random() >= DESCRIBED * self._evidence.kinds.alike:
            return None if self._evidence.title_words(chunk) & unsaid else ["of", self._named(chunk)]
        described = self._description(chunk, unsaid | self._evidence.title_words(chunk))
        return ["of the", *described] if described else None

    def _named(self, chunk: int) -> str:
        kind = self._evidence.kinds.of_chunk.get(chunk)
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
        often = NAMES_QUOTED if self._evidence.title(chunk) else 1.0
        return [Clue("description", chunk, number, common), *self._quoted_name(content(words, banned), often)]

    def _quoted_name(self, words: Sequence[Token], often: float) -> list[str]:
        names = [index for index, word in enumerate(words) if word.capital]
        if not names or self._rng.random() >= often:
            return []
        chosen = self._rng.choice(names)
        return [" ".join(word.text for word in words[chosen : chosen + 2] if word.capital)]


class Comparisons:
    """Drafts that compare; equal seeds give equal drafts."""

    def __init__(self, evidence: Evidence, rng: Random) -> None:
        self._evidence, self._rng = evidence, rng

    @cached_property
    def _compared(self) -> Sequence[int]:
        return [chunk for chunks in self._evidence.kinds.groups.values() for chunk in chunks]

    def draw(self) -> Draft | None:
        """Two things of one kind, both named."""
        evidence, rng = self._evidence, self._rng
        if not self._compared:
            return None
        first = rng.choice(self._compared)
        kind = evidence.kinds.of_chunk[first]
        second = rng.choice(evidence.kinds.groups[kind])
        names = evidence.title(first), evidence.title(second)
        if not all(names) or names[0] == names[1]:
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
        kinds = self._evidence.kinds.of_chunk
        for number in map(int, self._evidence.links):
            link = self._evidence.link(number)
            target = link.targets[0]
            if link.source in kinds and target in kinds and len(link.targets) == 1:
                groups.setdefault((kinds[link.source], kinds[target]), []).append(number)
        return {pair: numbers for pair, numbers in groups.items() if len(numbers) > 1}

    def draw_by_bridges(self) -> Draft | None:
        """Two things of one kind, both named, compared by what each leads to."""
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

"""Drafts of questions that compare two things of one kind, both named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from random import Random

from hopbench.eval.synthesize.chains import BRIDGE_KIND
from hopbench.eval.synthesize.draft import Clue, Draft, Step, around, content, lower_case
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.steps import hidden
from hopbench.retrieval.text import Token


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

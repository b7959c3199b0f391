"""Chains of facts for questions: one answer at every hop, each fact stated in another passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tools.hopworld import phrasing
from tools.hopworld.model import Entity, Fact


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts that lead from a named entity to an answer; `ends` are the entity or value after each fact."""

    start: Entity
    facts: tuple[Fact, ...]
    ends: tuple[Entity | str, ...]

    @property
    def signature(self) -> str:
        """What the question asks, regardless of whom."""
        turns = (f.relation + ("" if f.subject is e else "-") for f, e in zip(self.facts, self._befores, strict=True))
        return f"{self.start.kind} {' '.join(turns)}"

    @property
    def _befores(self) -> tuple[Entity, ...]:
        return (self.start, *(e for e in self.ends[:-1] if isinstance(e, Entity)))

    @property
    def gold(self) -> tuple[str, ...]:
        """The passages that tell the facts."""
        return tuple(dict.fromkeys(f.homes[0].id for f in self.facts))

    @property
    def hidden(self) -> tuple[str, ...]:
        """Names that the question must not give away: those of bridges and of the answer."""
        return tuple(n for e in self.ends if isinstance(e, Entity) for n in (e.name, *e.aliases))

    @property
    def naming(self) -> int:
        """How many of the gold passages name the start."""
        return sum(_names(f.homes[0], self.start) for f in self.facts)


def follow(start: Entity, relations: Sequence[str]) -> Chain | None:
    """The chain from `start` along these relations, if its facts are stated so that a question can be asked."""
    here: Entity | str = start
    facts: list[Fact] = []
    for relation in relations:
        fact = next((f for f in here.facts if f.relation == relation), None) if isinstance(here, Entity) else None
        if fact is None:
            return None
        facts.append(fact)
        here = fact.object
    chain = Chain(start, tuple(facts), tuple(f.object for f in facts))
    return chain if fits(chain) and start.id in chain.gold else None


def walk(rng: Random, start: Entity, hops: int) -> Chain | None:
    """A random path of `hops` facts that asks for one thing at every hop."""
    here, facts, ends = start, [], []
    seen = {id(start)}
    for hop in range(hops):
        last = hop == hops - 1
        steps: list[tuple[Fact, Entity | str]] = [
            (f, f.object)
            for f in here.facts
            if last or (isinstance(f.object, Entity) and f.relation in phrasing.PHRASE)
        ]
        inverse = phrasing.INVERSE_ASK if last else phrasing.INVERSE_PHRASE
        steps += [(f, f.subject) for f in here.incoming if f.relation in inverse and _only(f, here)]
        steps = [s for s in steps if id(s[1]) not in seen]
        if not steps:
            return None
        fact, end = rng.choice(steps)
        facts.append(fact)
        ends.append(end)
        if not last:
            assert isinstance(end, Entity)
            here = end
            seen.add(id(end))
    return Chain(start, tuple(facts), tuple(ends))


def _names(home: Entity, start: Entity) -> bool:
    mentioned = (e for f in home.stated for e in (f.subject, f.object))
    return home is start or start in home.echoes or any(e is start for e in mentioned)


def _only(fact: Fact, here: Entity) -> bool:
    """Whether no other entity of that noun stands in the same relation to `here`."""
    rivals = (f for f in here.incoming if f.relation == fact.relation and f.subject.kind == fact.subject.kind)
    return all(f is fact for f in rivals)


def fits(chain: Chain) -> bool:
    """Whether each fact is stated in one passage, all in different ones, and the last in full."""
    if any(len(f.homes) != 1 or not f.homes[0].id for f in chain.facts):
        return False
    return len(chain.gold) == len(chain.facts) and not chain.facts[-1].by_alias

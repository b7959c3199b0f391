"""Ask questions about the world: chains of facts with one answer, comparisons, and chains compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TypeVar

from tools.hopworld.entities import Community, Entity, Fact
from tools.hopworld.templates import (
    BRIDGE_COMPARISONS,
    COMPARISONS,
    HOPS,
    INVERSE_HOPS,
    INVERSE_QUESTIONS,
    QUESTIONS,
    RELATION_LABELS,
)

T = TypeVar("T")
SHARES = {"bridge": 0.40, "compositional": 0.20, "comparison": 0.22, "bridge-comparison": 0.18}
_HOPS = {"bridge": 2, "compositional": 3}
# Chance that a question names the region's adjective ("the Velmoran film X"), the main dial of lexical difficulty.
_DEMONYM = {"bridge": 0.8, "compositional": 0.9, "comparison": 0.0, "bridge-comparison": 0.5}
# Chance that the question with most of its gold passages naming its start is preferred: the second dial.
_NAMING = {"bridge": 0.55, "compositional": 0.85, "comparison": 0.0, "bridge-comparison": 0.9}
_COMPARISONS = {"comparison": COMPARISONS, "bridge-comparison": BRIDGE_COMPARISONS}
_WORKS = frozenset({"film", "novel", "song", "ship"})
_TRIES = 60
_MAX_CHAINS = 12


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
    """Follow these relations from `start`; None unless the facts are stated so that a question can be asked."""
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
    """Draw a random path of `hops` facts with one answer at every hop."""
    here, facts, ends = start, [], []
    seen = {id(start)}
    for hop in range(hops):
        last = hop == hops - 1
        steps: list[tuple[Fact, Entity | str]] = [
            (f, f.object) for f in here.facts if last or (isinstance(f.object, Entity) and f.relation in HOPS)
        ]
        inverse = INVERSE_QUESTIONS if last else INVERSE_HOPS
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


@dataclass(frozen=True, slots=True)
class WorldQuestion:
    """A question with its gold: `evidences` are subject, relation, object; `gold` are passage ids."""

    text: str
    type: str
    answer: str
    aliases: tuple[str, ...]
    gold: tuple[str, ...]
    evidences: tuple[tuple[str, str, str], ...]
    hops: int


class QuestionWriter:
    """Writes questions about a world while it is being made: types in their shares, signatures in rotation."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed * 31 + 7)
        self.asked: Counter[str] = Counter()
        self.signatures: Counter[str] = Counter()
        self.texts: set[str] = set()

    def about(self, community: Community, known: Sequence[Community], due: int) -> Iterator[WorldQuestion]:
        """Write questions about this community until `due` have been written in all (fewer if it yields fewer)."""
        for _ in range(_TRIES + 20 * (due - self.asked.total())):
            if self.asked.total() >= due:
                return
            kind = min(SHARES, key=lambda k: (self.asked[k] + 1) / SHARES[k])
            question = self._one(kind, community, known)
            if question and question.text not in self.texts:
                self.texts.add(question.text)
                self.asked[kind] += 1
                yield question

    def _one(self, kind: str, community: Community, known: Sequence[Community]) -> WorldQuestion | None:
        if kind in _HOPS:
            return self._chained(kind, community)
        other = self.rng.choice(known) if known else community
        return self._compared(kind, community, other)

    def _rarest(self, options: Sequence[tuple[str, T]]) -> T:
        """The option whose signature was asked least."""
        signature, option = min(options, key=lambda o: self.signatures[o[0]])
        self.signatures[signature] += 1
        return option

    def _chained(self, kind: str, community: Community) -> WorldQuestion | None:
        walks = (walk(self.rng, self.rng.choice(community.entities), _HOPS[kind]) for _ in range(_TRIES))
        chains = list(islice((c for c in walks if c and fits(c)), _MAX_CHAINS))
        if not chains:
            return None
        best = max(c.naming for c in chains) if self.rng.random() < _NAMING[kind] else 0
        chain = self._rarest([(c.signature, c) for c in chains if c.naming >= best])
        text = self._wording(chain, community.demonym if self.rng.random() < _DEMONYM[kind] else "")
        if any(name in text for name in chain.hidden):
            return None
        last = chain.ends[-1]
        answer = last if isinstance(last, str) else last.name
        evidences = tuple(_evidence(f) for f in chain.facts)
        return WorldQuestion(text, kind, answer, _answer_aliases(last), chain.gold, evidences, len(chain.facts))

    def _wording(self, chain: Chain, demonym: str) -> str:
        phrase, here = named(chain.start, demonym), chain.start
        for n, (fact, end) in enumerate(zip(chain.facts, chain.ends, strict=True)):
            last, forward = n == len(chain.facts) - 1, fact.subject is here
            table = (QUESTIONS if forward else INVERSE_QUESTIONS) if last else (HOPS if forward else INVERSE_HOPS)
            noun = end.noun if isinstance(end, Entity) else ""
            phrase = self.rng.choice(table[fact.relation]).format(x=phrase, k=noun)
            if isinstance(end, Entity):
                here = end
        return phrase[0].upper() + phrase[1:]

    def _compared(self, kind: str, community: Community, other: Community) -> WorldQuestion | None:
        """Two entities by a value of their own, or of what their first hop leads to."""
        table = _COMPARISONS[kind]
        asked = self._rarest([(key, key) for key in self.rng.sample(list(table), len(table))])
        key = tuple(asked.split())
        naming = self.rng.random() < _NAMING[kind]
        sides = [(c, self._side(c, key, naming=naming)) for c in self.rng.sample((community, other), 2)]
        chains = [chain for _, chain in sides if chain]
        if len(chains) < 2 or not _comparable(*chains):
            return None
        wants_larger, local = self.rng.random() < 0.5, self.rng.random() < _DEMONYM[kind]
        a, b = (named(chain.start, c.demonym if local else "", bare=not local) for c, chain in sides if chain)
        text = self.rng.choice(table[asked]["larger" if wants_larger else "smaller"]).format(a=a, b=b)
        if any(name in text for chain in chains for name in chain.hidden):
            return None
        winner = (max if wants_larger else min)(chains, key=_compared_value).start
        gold = tuple(g for chain in chains for g in chain.gold)
        evidences = tuple(_evidence(f) for chain in chains for f in chain.facts)
        return WorldQuestion(text, kind, winner.name, winner.aliases, gold, evidences, len(chains[0].facts))

    def _side(self, community: Community, key: tuple[str, ...], *, naming: bool) -> Chain | None:
        """A chain along the relations of `key` (kind, hop…) that starts in this community."""
        entities = community.of(key[0])
        chains = [c for e in self.rng.sample(entities, len(entities)) if (c := follow(e, key[1:]))]
        if naming:
            chains.sort(key=lambda c: -c.naming)
        return chains[0] if chains else None


def named(entity: Entity, demonym: str, *, bare: bool = False) -> str:
    """Name an entity in a question: with its kind, and with its region where `demonym` is given."""
    if bare:
        return entity.article + entity.name
    demonym = "" if entity.kind == "region" else demonym
    noun = "" if entity.kind in {"person", "town"} and not demonym else f"{entity.noun} "
    if demonym and entity.kind not in _WORKS and entity.noun in entity.name.lower():
        return f"the {demonym} {entity.name}"
    if entity.kind in {"town", "region"} and noun:
        return f"the {demonym} {noun}of {entity.name}".replace("  ", " ")
    if not noun:
        return entity.article + entity.name
    if not demonym and entity.kind not in _WORKS:
        return entity.article + entity.name
    return f"the {demonym} {noun}{entity.name}".replace("  ", " ")


def _compared_value(chain: Chain) -> int:
    return number(chain.facts[-1].value)


def _comparable(first: Chain, second: Chain) -> bool:
    """Whether the two differ in name and value and need different passages."""
    differ = first.start.name != second.start.name and _compared_value(first) != _compared_value(second)
    return differ and set(first.gold).isdisjoint(second.gold)


def number(value: str) -> int:
    """Read the number at the start of a value: "12,400" is 12400, "31 km" is 31."""
    return int(value.split(maxsplit=1)[0].replace(",", ""))


def _evidence(fact: Fact) -> tuple[str, str, str]:
    return fact.subject.name, RELATION_LABELS.get(fact.relation, fact.relation), fact.value


def _answer_aliases(answer: Entity | str) -> tuple[str, ...]:
    if isinstance(answer, Entity):
        return answer.aliases
    if answer.endswith((" km", " minutes")):
        return (answer.split()[0],)
    return (answer.replace(",", ""),) if "," in answer else ()

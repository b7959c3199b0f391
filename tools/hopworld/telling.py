"""Which passage tells a fact, by which name, and what passages name without telling anything."""

from __future__ import annotations

from random import Random

from tools.hopworld.model import Community, Entity, Fact
from tools.hopworld.plans import INVERSE

MOST_SENTENCES = 8
_MOST_STATED = 6  # facts in one passage
# Chance that a fact with inverse plans is stated only by its object's passage, or by both passages.
_STATED_BY_OBJECT, _STATED_BY_BOTH = 0.3, 0.1
_BY_ALIAS = 0.12
_CALLED_BY_ALIAS = frozenset({"person", "company", "university"})
# Chances that a passage names, without a fact, something whose own passage tells a fact about it, or one step further.
_ECHO_NEAR, _ECHO_FAR, _MOST_NEAR = 0.6, 0.5, 3


def state(rng: Random, subject: Entity, relation: str, value: Entity | str) -> None:
    """Record a fact and decide which passages tell it: mostly one, none if they are full."""
    homes: tuple[Entity, ...] = (subject,)
    if isinstance(value, Entity) and relation in INVERSE:
        luck = rng.random()
        homes = (value,) if luck < _STATED_BY_OBJECT else homes
        homes = (subject, value) if luck > 1 - _STATED_BY_BOTH else homes
    fact = Fact(subject, relation, value, tuple(h for h in homes if len(h.stated) < _MOST_STATED))
    if len(fact.homes) == 1:
        far = value if fact.homes[0] is subject else subject
        fact.by_alias = _has_own_alias(far) and rng.random() < _BY_ALIAS
    subject.facts.append(fact)
    if isinstance(value, Entity):
        value.incoming.append(fact)
    for home in fact.homes:
        home.stated.append(fact)


def _has_own_alias(far: Entity | str) -> bool:
    return isinstance(far, Entity) and far.distinct and far.kind in _CALLED_BY_ALIAS and far.alias != ""


def year(entity: Entity, relation: str) -> int:
    """The year that this fact of the entity gives."""
    return next(int(f.value) for f in entity.facts if f.relation == relation)


def echo(rng: Random, community: Community) -> None:
    """Let passages name related entities, as encyclopedias do, without telling what relates them."""
    near = {id(e): _stated_elsewhere(e) for e in community.entities}
    for entity in community.entities:
        chosen = [e for e in near[id(entity)] if rng.random() < _ECHO_NEAR][:_MOST_NEAR]
        further = [f for e in near[id(entity)] for f in near.get(id(e), ()) if f is not entity and f not in chosen]
        if further and rng.random() < _ECHO_FAR:
            chosen.append(rng.choice(further))
        entity.echoes = chosen[: MOST_SENTENCES - 1 - len(entity.stated)]


def _stated_elsewhere(entity: Entity) -> list[Entity]:
    """Entities whose passages alone tell a fact that they share with this one."""
    facts = (f for f in (*entity.facts, *entity.incoming) if entity not in f.homes)
    return list(dict.fromkeys(home for f in facts for home in f.homes))

"""The nouns of a fictional world: entities, facts about them, and the community in which they live."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Entity:
    """One thing of the world. `id` is its passage's id, empty when no passage is about it.

    `noun` says what it is ("film", "botanist"); `alias` is a shorter name or ""; `article` is "the " where the name
    needs one; `distinct` is False when another entity has the same alias. `facts` have it as subject, `incoming` as
    object, `stated` are those in its own passage; `echoes` are entities that it names without stating a fact.
    """

    kind: str
    name: str
    noun: str
    id: str = ""
    title: str = ""
    pronoun: str = "it"
    alias: str = ""
    article: str = ""
    distinct: bool = True
    facts: list[Fact] = field(default_factory=list)
    incoming: list[Fact] = field(default_factory=list)
    stated: list[Fact] = field(default_factory=list)
    echoes: list[Entity] = field(default_factory=list)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other spellings that a judge accepts."""
        return (self.alias,) if self.alias else ()


@dataclass(slots=True, eq=False)
class Fact:
    """`subject` –`relation`→ `object` (an entity or a value), stated in the passages of `homes`.

    Without homes it is true but stated nowhere. `by_alias`: the home calls the other entity only by its alias.
    """

    subject: Entity
    relation: str
    object: Entity | str
    homes: tuple[Entity, ...]
    by_alias: bool = False

    @property
    def value(self) -> str:
        """The object's name or the value itself."""
        return self.object.name if isinstance(self.object, Entity) else self.object


@dataclass(slots=True, eq=False)
class Community:
    """A region with what belongs to it; most facts stay inside. `extras` are people and places without passage."""

    index: int
    region: str
    demonym: str
    entities: list[Entity] = field(default_factory=list)
    extra_people: tuple[str, ...] = ()
    extra_places: tuple[str, ...] = ()

    def of(self, *kinds: str) -> list[Entity]:
        """Its entities of these kinds, in the order of their making."""
        return [e for e in self.entities if e.kind in kinds]

    def forget(self) -> None:
        """Drop the facts, so that links to older communities do not keep those in memory."""
        for entity in self.entities:
            for facts in (entity.facts, entity.incoming, entity.stated):
                facts.clear()
            entity.echoes.clear()

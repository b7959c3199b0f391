"""The entities of a fictional world, the facts about them, and their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from random import Random

from tools.hopworld.templates import ROLES

# No coda followed by an onset spells another onset, and no onset is empty: a spelling has one division into syllables.
_ONSETS = tuple("b br d dr f fl g gl h j k kr l m n p pr qu r s t th tr v z vr sk".split())
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("", "l", "n", "r", "m")
_SYLLABLES = tuple(o + v + c for o in _ONSETS for v in _VOWELS for c in _CODAS)
# Worlds whose seeds differ modulo _WORLDS take disjoint sets of stems.
_WORLDS = 16
_GIVEN = {"he": ("o", "an", "ek", "us", "in"), "she": ("a", "ia", "elle", "ys", "ene")}
_SURNAME = ("sen", "ov", "ell", "ard", "ine", "quist", "mere", "ick", "otti", "aru", "wyn", "ez")
_TOWN = ("vale", "wick", "mouth", "stead", "haven", "holm", "by", "field", "gate", "combe", "ow", "ona")
_REGION = (("ia", "ian"), ("esh", "eshi"), ("una", "unan"), ("and", "ander"), ("ora", "oran"), ("eth", "ethine"))
# {w} is an unused stem: no title can be known from elsewhere.
_TITLES: dict[str, tuple[str, ...]] = {
    "film": (
        "The {w} Ferry",
        "Beyond {w}",
        "{w}",
        "The Last Night of {w}",
        "A Stranger in {w}",
        "The {w} Inheritance",
        "The Return of {w}",
        "Lamplight in {w}",
        "The {w} Road",
        "Seven Doors of {w}",
    ),
    "novel": (
        "The {w} Letters",
        "The House of {w}",
        "{w}",
        "A Winter in {w}",
        "The Gardeners of {w}",
        "The Book of {w}",
        "Ashes of {w}",
        "The {w} Almanac",
        "Children of {w}",
    ),
    "song": (
        "Songs for {w}",
        "Goodnight {w}",
        "{w} Waltz",
        "My {w}",
        "The Bells of {w}",
        "Rain on {w}",
        "{w} Lullaby",
        "The {w} Farewell",
    ),
}
_FIRMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "studio": ("film studio", ("{w} Pictures", "{w} Film Company", "{w} {v} Studios")),
    "press": ("publishing house", ("{w} Press", "{w} {v} Publishing House", "{w} Book Company")),
    "label": ("record label", ("{w} Records", "{w} {v} Gramophone Company", "{w} Phonographic Works")),
    "yard": ("shipbuilder", ("{w} Shipyard", "{w} {v} Iron Works", "{w} Marine Works")),
}
_OTHERS: dict[str, tuple[str, ...]] = {
    "band": ("The {w} Quartet", "The Lanterns of {w}", "The {w} Serenaders", "The {w} Brass Circle"),
    "university": ("University of {w}", "{w} {v} Institute of Sciences", "{w} College"),
    "school": ("{w} Grammar School", "{w} Academy", "{w} Hall School"),
    "river": ("River {w}", "{w} River"),
    "award": ("{w} Medal", "{w} Prize", "{w} Memorial Award"),
    "ship": ("SS {w}", "{w} Star", "Queen {w}", "Spirit of {w}"),
    "journal": ("The {w} Gazette", "{w} Courier", "The {w} Review", "{w} Observer"),
}
_NOUNS = {"band": "group", "award": "prize", "journal": "paper"}


@dataclass(slots=True, eq=False)
class Entity:
    """One thing of the world. `id` is its passage's id, empty when no passage is about it.

    `noun` says what it is ("film", "botanist"); `alias` is a shorter name or ""; `article` is "the " where the name
    needs one; `distinct` is False when another entity has the same alias. `facts` have it as subject,
    `incoming` as object, `stated` are those in its own passage; `echoes` are entities that its passage names without
    stating a fact.
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


def coprime(start: int, modulus: int) -> int:
    """Smallest integer ≥ `start` that shares no factor with `modulus`: multiplying by it permutes 0..modulus−1."""
    while gcd(start, modulus) != 1:
        start += 1
    return start


class Namer:
    """Draws names for one world. `capacity` is the number of stems the world may need; it sets the syllables."""

    def __init__(self, seed: int, capacity: int) -> None:
        self._syllables = 2
        while len(_SYLLABLES) ** self._syllables < capacity * _WORLDS:
            self._syllables += 1
        self._space = len(_SYLLABLES) ** self._syllables
        self._step = coprime(int(self._space * 0.6180339887), self._space)
        self._shift = (seed // _WORLDS) * 7919
        self._world = seed % _WORLDS
        self._count = 0
        self._rng = Random(seed)
        self._given = {p: tuple(self.stem() + self._rng.choice(ends) for _ in range(90)) for p, ends in _GIVEN.items()}

    def stem(self) -> str:
        """The next unused stem, capitalised."""
        code = self._count * _WORLDS + self._world
        self._count += 1
        rest = (code * self._step + self._shift) % self._space
        parts = []
        for _ in range(self._syllables):
            rest, digit = divmod(rest, len(_SYLLABLES))
            parts.append(_SYLLABLES[digit])
        return "".join(parts).capitalize()

    def given(self, pronoun: str, rng: Random) -> str:
        """A given name; a world shares 180 of them among all its people."""
        return rng.choice(self._given[pronoun])

    def surname(self, rng: Random) -> str:
        """An unused surname."""
        return self.stem() + rng.choice(_SURNAME)

    def town(self, rng: Random) -> str:
        """An unused name of a town or hill."""
        return self.stem() + rng.choice(_TOWN)

    def region(self, rng: Random) -> tuple[str, str]:
        """An unused region with the adjective of its people."""
        stem = self.stem()
        ending, demonym = rng.choice(_REGION)
        return stem + ending, stem + demonym


def make_person(namer: Namer, rng: Random, role: str, surname: str = "") -> Entity:
    """Make a person with a role; a given `surname` is shared with another person."""
    pronoun = rng.choice(("he", "she"))
    family = surname or namer.surname(rng)
    entity = Entity("person", f"{namer.given(pronoun, rng)} {family}", rng.choice(ROLES[role]), pronoun=pronoun)
    entity.alias, entity.distinct = family, not surname
    return entity


def make_work(namer: Namer, rng: Random, kind: str, name: str = "") -> Entity:
    """Make a film, novel or song; a given `name` is the title of another work, so that qualifiers tell them apart."""
    entity = Entity(kind, name or rng.choice(_TITLES[kind]).format(w=namer.stem()), kind)
    entity.alias = entity.name[4:] if entity.name.startswith("The ") else ""
    if name or rng.random() < 0.06:
        entity.title, entity.distinct = f"{entity.name} ({kind})", False
    return entity


def make_company(namer: Namer, rng: Random, trade: str) -> Entity:
    """Make a company of a trade: studio, press, label or yard."""
    noun, patterns = _FIRMS[trade]
    return _with_acronym(Entity("company", _fill(rng.choice(patterns), namer), noun))


def make_entity(namer: Namer, rng: Random, kind: str) -> Entity:
    """Make an institution, river, award, ship, band or journal."""
    name = _fill(rng.choice(_OTHERS[kind]), namer)
    entity = _with_acronym(Entity(kind, name, _NOUNS.get(kind, kind)))
    if name.startswith("University") or kind in {"river", "award"}:
        entity.article = "the "
    return entity


def _fill(pattern: str, namer: Namer) -> str:
    return pattern.format(w=namer.stem(), v=namer.stem() if "{v}" in pattern else "")


def _with_acronym(entity: Entity) -> Entity:
    """Names of two stems get an acronym; names with an article are also used without it."""
    words = entity.name.split()
    if len(words) > 3 and entity.kind in {"company", "university"}:
        entity.alias = "".join(w[:2] for w in words[:2]).upper() + "".join(w[0] for w in words[2:] if w[0].isupper())
    elif words[0] == "The":
        entity.alias = entity.name[4:]
    return entity

"""Make one community: its entities, the facts about them, and which passages state each fact."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tools.hopworld.entities import Community, Entity, Fact, Namer, make_company, make_entity, make_person, make_work
from tools.hopworld.templates import OBJECT_SENTENCES

MAX_SENTENCES = 8
_MAX_STATED = 6  # facts in one passage
# Chance that a fact with inverse plans is stated only by its object's passage, or by both passages.
_STATED_BY_OBJECT, _STATED_BY_BOTH = 0.3, 0.1
_BY_ALIAS = 0.12
_CALLED_BY_ALIAS = frozenset({"person", "company", "university"})
# Chances that a passage names, without a fact, something whose own passage tells a fact about it, or one step further.
_ECHO_NEAR, _ECHO_FAR, _MAX_NEAR = 0.6, 0.5, 3
_TRADES = ("studio", "press", "label", "yard")
# Those who founded something were there first, so that no work is older than who published it.
_FOUNDERS_BORN, _OTHERS_BORN = (1815, 1855), (1870, 1925)
# Chances of links between communities, a community each: they keep the world connected without a hub.
_MOVED, _SHOT_ABROAD, _SHARED_SURNAME, _SHARED_TITLE = 0.15, 0.1, 0.12, 0.12


def state(rng: Random, subject: Entity, relation: str, value: Entity | str) -> None:
    """Record a fact and decide which passages state it: mostly one, none if they are full."""
    homes: tuple[Entity, ...] = (subject,)
    if isinstance(value, Entity) and relation in OBJECT_SENTENCES:
        luck = rng.random()
        homes = (value,) if luck < _STATED_BY_OBJECT else homes
        homes = (subject, value) if luck > 1 - _STATED_BY_BOTH else homes
    fact = Fact(subject, relation, value, tuple(h for h in homes if len(h.stated) < _MAX_STATED))
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
    """Look up the year of a fact about the entity."""
    return next(int(f.value) for f in entity.facts if f.relation == relation)


def echo(rng: Random, community: Community) -> None:
    """Let passages name related entities, as encyclopedias do, without stating the relation."""
    near = {id(e): _stated_elsewhere(e) for e in community.entities}
    for entity in community.entities:
        chosen = [e for e in near[id(entity)] if rng.random() < _ECHO_NEAR][:_MAX_NEAR]
        further = [f for e in near[id(entity)] for f in near.get(id(e), ()) if f is not entity and f not in chosen]
        if further and rng.random() < _ECHO_FAR:
            chosen.append(rng.choice(further))
        entity.echoes = chosen[: MAX_SENTENCES - 1 - len(entity.stated)]


def _stated_elsewhere(entity: Entity) -> list[Entity]:
    """List entities whose passages alone state a fact that they share with this one."""
    facts = (f for f in (*entity.facts, *entity.incoming) if entity not in f.homes)
    return list(dict.fromkeys(home for f in facts for home in f.homes))


class Builder:
    """Makes one community; `known` are older communities to link with, oldest first."""

    def __init__(self, rng: Random, namer: Namer, index: int, known: Sequence[Community]) -> None:
        self.rng, self.namer, self.known = rng, namer, known
        region, demonym = namer.region(rng)
        people = tuple(f"{namer.given(rng.choice(('he', 'she')), rng)} {namer.surname(rng)}" for _ in range(7))
        places = tuple(namer.town(rng) for _ in range(3))
        self.made = Community(index, region, demonym, [], people, places)

    def build(self) -> Community:
        """Make everything, in an order in which facts only need what already exists."""
        self._land()
        self._people()
        self._firms()
        self._institutions()
        self._works()
        self._lives()
        echo(self.rng, self.made)
        return self.made

    def _add(self, entity: Entity) -> Entity:
        self.made.entities.append(entity)
        entity.title = entity.title or entity.name
        return entity

    def _state(self, subject: Entity, relation: str, value: Entity | str) -> None:
        state(self.rng, subject, relation, value)

    def _year(self, low: int, high: int) -> str:
        return str(self.rng.randint(low, high))

    def _land(self) -> None:
        rng, namer = self.rng, self.namer
        region = self._add(Entity("region", self.made.region, "region"))
        river = self._add(make_entity(namer, rng, "river"))
        self._state(river, "length", f"{rng.randint(31, 890)} km")
        self._state(river, "source", f"Mount {namer.stem()}")
        for i in range(rng.choice((2, 3))):
            town = self._add(Entity("town", namer.town(rng), "town"))
            self._state(town, "population", f"{rng.randint(2, 180)},{rng.randint(0, 999):03d}")
            if i == 0:
                self._state(region, "capital", town)
            if i < 2 or rng.random() < 0.5:
                self._state(town, "river", river)
        self.towns = self.made.of("town")

    def _people(self) -> None:
        rng, namer = self.rng, self.namer
        roles = ["director", "director", "novelist", "musician", "actor", "founder", "scholar"]
        roles.append(rng.choice(("novelist", "musician", "founder", "founder")))
        self.cast: dict[str, list[Entity]] = {}
        for n, role in enumerate(roles):
            surname = ""
            if n == 4 and rng.random() < 0.5:  # a relative in the same community
                self.cast["director"][0].distinct = False
                surname = self.cast["director"][0].alias
            elif n == 3 and self.known and rng.random() < _SHARED_SURNAME:
                surname = self._shared_surname()
            someone = self._add(make_person(namer, rng, role, surname))
            self.cast.setdefault(role, []).append(someone)
            birth = rng.randint(*(_FOUNDERS_BORN if role in {"founder", "scholar"} else _OTHERS_BORN))
            self._state(someone, "birth", str(birth))
            if rng.random() < 0.6:
                self._state(someone, "death", str(birth + rng.randint(56, 90)))

    def _shared_surname(self) -> str:
        """The surname of someone in another community whom no passage calls by it alone, or ""."""
        someone = self.rng.choice(self._elsewhere("person"))
        if any(f.by_alias for f in (*someone.facts, *someone.incoming)):
            return ""
        someone.distinct = False
        return someone.alias

    def _elsewhere(self, *kinds: str) -> list[Entity]:
        return self.rng.choice(self.known).of(*kinds)

    def _town(self, moved: float = 0.0) -> Entity:
        """A town of this community or, with the chance `moved`, of another one."""
        if self.known and self.rng.random() < moved:
            return self.rng.choice(self._elsewhere("town"))
        return self.rng.choice(self.towns)

    def _found(self, entity: Entity, founder: Entity | None, low: int, high: int) -> None:
        """State who founded it, if someone with a passage did, and when."""
        if founder:
            self._state(entity, "founder", founder)
            low, high = _after(founder, 24, 38)
        self._state(entity, "founded", self._year(low, high))

    def _firms(self) -> None:
        self.firms = {}
        founders = dict(zip(self.rng.sample(_TRADES, len(_TRADES)), self.cast["founder"], strict=False))
        for trade in _TRADES:
            firm = self.firms[trade] = self._add(make_company(self.namer, self.rng, trade))
            self._state(firm, "seat", self._town())
            self._found(firm, founders.get(trade), 1850, 1895)

    def _institutions(self) -> None:
        rng, cast = self.rng, self.cast
        make = {k: self._add(make_entity(self.namer, rng, k)) for k in ("university", "school", "journal", "award")}
        for kind, founder in (("university", cast["scholar"][0]), ("school", None)):
            self._state(make[kind], "campus", self._town())
            self._found(make[kind], founder, 1500, 1820)
        editor = rng.choice(cast["novelist"])
        self._state(make["journal"], "editor", editor)
        self._state(make["journal"], "seat", self._town())
        self._state(make["journal"], "founded", self._year(*_after(editor, 22, 40)))
        self._state(make["award"], "established", self._year(1900, 1930))
        self._state(make["award"], "sponsor", rng.choice((make["university"], make["journal"], self.firms["press"])))
        self.schools, self.award = (make["university"], make["school"]), make["award"]

    def _works(self) -> None:
        rng, cast = self.rng, self.cast
        novels = [self._novel(cast["novelist"][n % len(cast["novelist"])]) for n in range(rng.choice((1, 2)))]
        for n in range(rng.choice((3, 4))):
            self._film(cast["director"][n % 2], novels[0] if n == 1 and rng.random() < 0.5 else None)
        self._music(cast["musician"][0], cast["musician"][-1])
        ship = self._add(make_entity(self.namer, rng, "ship"))
        self._state(ship, "builder", self.firms["yard"])
        self._state(ship, "port", self._town())
        self._state(ship, "launched", self._year(1900, 1960))

    def _music(self, soloist: Entity, leader: Entity) -> None:
        band = self._add(make_entity(self.namer, self.rng, "band"))
        self._state(band, "origin", self._town())
        self._state(band, "leader", leader)
        self._state(band, "formed", self._year(*_after(leader, 18, 40)))
        for performer, musician in ((soloist, soloist), (band, leader))[: self.rng.choice((1, 2))]:
            song = self._add(make_work(self.namer, self.rng, "song", self._shared_title("film", "novel")))
            self._state(song, "performer", performer)
            self._state(song, "label", self.firms["label"])
            self._state(song, "recorded", self._year(*_after(musician, 41, 55)))

    def _shared_title(self, *kinds: str) -> str:
        """The title of another kind of work of another community, or "" mostly."""
        if not self.known or self.rng.random() >= _SHARED_TITLE / 2:
            return ""
        source = self.rng.choice(self._elsewhere(*kinds))
        if not source.distinct:
            return ""
        source.distinct = False
        return source.name

    def _novel(self, author: Entity) -> Entity:
        novel = self._add(make_work(self.namer, self.rng, "novel"))
        self._state(novel, "author", author)
        self._state(novel, "publisher", self.firms["press"])
        self._state(novel, "setting", self._town())
        self._state(novel, "published", self._year(*_after(author, 24, 54)))
        return novel

    def _film(self, director: Entity, source: Entity | None) -> None:
        rng = self.rng
        film = self._add(make_work(self.namer, rng, "film", source.name if source else ""))
        self._state(film, "director", director)
        self._state(film, "released", self._year(*_after(director, 26, 54)))
        self._state(film, "studio", self.firms["studio"])
        self._state(film, "location", self._town(_SHOT_ABROAD / 4))
        if source:
            source.title, source.distinct = f"{source.name} (novel)", False
            self._state(film, "based_on", source)
        for relation, role in (("lead", "actor"), ("composer", "musician")):
            if rng.random() < 0.5:
                self._state(film, relation, rng.choice(self.cast[role]))
        if rng.random() < 0.5:
            self._state(film, "minutes", f"{rng.randint(62, 188)} minutes")

    def _lives(self) -> None:
        rng, people = self.rng, self.made.of("person")
        mover = rng.choice(people)
        for someone in people:
            self._state(someone, "birthplace", self._town(_MOVED if someone is mover else 0.0))
            if rng.random() < 0.65:
                open_by = [s for s in self.schools if year(s, "founded") < year(someone, "birth") + 16]
                self._state(someone, "alma", rng.choice(open_by))
            older = [p for p in people if year(p, "birth") < year(someone, "birth") - 8]
            if older and rng.random() < 0.3:
                self._state(someone, "mentor", rng.choice(older))
            if rng.random() < 0.3:
                self._state(someone, "prize", self.award)
            if rng.random() < 0.3:
                self._state(someone, "spouse", rng.choice(self.made.extra_people))
            if rng.random() < 0.25 and any(f.relation == "death" for f in someone.facts):
                self._state(someone, "burial", self._town())


def _after(person: Entity, low: int, high: int) -> tuple[int, int]:
    """The years in which the person is between `low` and `high` years old."""
    return year(person, "birth") + low, year(person, "birth") + high

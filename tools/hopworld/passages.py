"""Write an entity's passage in English: references, sentences, filler, order and length."""

from __future__ import annotations

import re
from random import Random

from tools.hopworld.community import MAX_SENTENCES, year
from tools.hopworld.entities import Community, Entity, Fact
from tools.hopworld.templates import ECHOES, FILLERS, GENRES, OBJECT_SENTENCES, OPENINGS, SUBJECT_SENTENCES, THEMES

_PRONOUNS = {"he": ("he", "him", "his"), "she": ("she", "her", "her"), "it": ("it", "it", "its")}
_EARLY = {"birth": -3.0, "birthplace": -2.0, "director": -1.0, "author": -1.0, "death": 9.0, "burial": 10.0}
_APPOSED = frozenset({"mentor", "founder", "lead", "composer", "editor", "leader"})
_LOCAL_OPENING = 0.75  # share of openings that name the region
_APPOSITION, _YEARS_IN_BRACKETS, _ACRONYM = 0.25, 0.4, 0.9
_MIN_SENTENCES = 2
_LATE = (1986, 2019)
_AN = re.compile(r"\b(a) (?=[aeio])")


def passage(entity: Entity, community: Community, rng: Random) -> str:
    """Write the entity's passage: 2-8 sentences that state all of `entity.stated`."""
    return _PassageWriter(entity, community, rng).text()


class _PassageWriter:
    """Writes one passage; remembers which entities it named, so that a second mention may be short."""

    def __init__(self, entity: Entity, community: Community, rng: Random) -> None:
        self.entity, self.community, self.rng = entity, community, rng
        self.named: set[int] = set()
        self.person_before = False

    def text(self) -> str:
        facts = sorted(self.entity.stated, key=lambda f: _EARLY.get(f.relation, 2.0) + self.rng.random() * 2.5)
        opening, facts = self._opening(facts)
        rest: list[Fact | Entity | str] = [*facts, *self.entity.echoes]
        wanted = self.rng.randint(_MIN_SENTENCES, MAX_SENTENCES) - 1 - len(rest)
        for plan in self.rng.sample(FILLERS[self.entity.kind], max(0 if rest else 1, wanted)):
            rest.insert(self.rng.randint(0, len(rest)), plan)
        return " ".join([opening, *(self._sentence(item) for item in rest)])

    def _opening(self, facts: list[Fact]) -> tuple[str, list[Fact]]:
        """Write the first sentence, with years in brackets for some people; those facts are then stated."""
        entity, rng = self.entity, self.rng
        openings = OPENINGS[entity.kind]
        plan = rng.choice(openings["local" if not openings["plain"] or rng.random() < _LOCAL_OPENING else "plain"])
        name = entity.name
        years = [f.value for f in facts if f.relation in {"birth", "death"}]
        if len(years) == 2 and rng.random() < _YEARS_IN_BRACKETS:
            name += f" ({years[0]}–{years[1]})"
            facts = [f for f in facts if f.relation not in {"birth", "death"}]
        if entity.alias.isupper() and rng.random() < _ACRONYM:
            name += f" ({entity.alias})"
        genre = entity.noun if entity.kind == "company" else rng.choice(GENRES)
        slots = self._slots() | {"N": name, "role": entity.noun, "genre": genre, "p": _PRONOUNS[entity.pronoun][2]}
        return _finish((entity.article if plan.startswith("{N}") else "") + plan.format(**slots)), facts

    def _sentence(self, item: Fact | Entity | str) -> str:
        if isinstance(item, Entity):
            plan = self.rng.choice(ECHOES).replace("{o}", item.article + item.name)
            self.named.add(id(item))
            return self._sentence(plan)
        if isinstance(item, str):
            person, self.person_before = self.person_before, False
            return _finish(item.format(**self._reference(person), **self._slots()))
        plans = SUBJECT_SENTENCES if item.subject is self.entity else OBJECT_SENTENCES
        other = item.object if item.subject is self.entity else item.subject
        person, self.person_before = self.person_before, isinstance(other, Entity) and other.kind == "person"
        return _finish(
            self.rng.choice(plans[item.relation]).format(o=self._mention(item, other), **self._reference(person))
        )

    def _mention(self, fact: Fact, other: Entity | str) -> str:
        """Name another entity: in full first, briefly afterwards."""
        if isinstance(other, str):
            return other
        brief = fact.by_alias or (id(other) in self.named and other.distinct)
        self.named.add(id(other))
        if brief and other.alias:
            return other.alias
        apposed = other.kind == "person" and fact.relation in _APPOSED and self.rng.random() < _APPOSITION
        article = "" if other.kind in {"river", "award"} and fact.relation in {"river", "prize"} else other.article
        return f"the {other.noun} {other.name}" if apposed else article + other.name

    def _reference(self, ambiguous: bool) -> dict[str, str]:
        """Words for the passage's own entity: a pronoun, a short name or what it is."""
        entity, luck = self.entity, self.rng.random()
        nominative, accusative, possessive = _PRONOUNS[entity.pronoun]
        if luck < (0.3 if ambiguous and entity.kind == "person" else 0.6):
            return _cases(nominative, accusative, possessive)
        if entity.kind == "person" or luck > 0.8:
            name = entity.alias or entity.article + entity.name
            name = f"the {name}" if entity.alias.isupper() else name
        else:
            name = f"the {entity.noun}"
        return _cases(name, name, name + ("'" if name.endswith("s") else "'s"))

    @property
    def _years(self) -> tuple[int, int]:
        """The years of a passage's small events: in a person's life, or after everything stated of anything else."""
        if self.entity.kind != "person":
            return _LATE
        birth = year(self.entity, "birth")
        return birth + 24, birth + 55

    def _slots(self) -> dict[str, str]:
        rng, community = self.rng, self.community
        return {
            "dem": community.demonym,
            "a_dem": f"a {community.demonym}",
            "region": community.region,
            "x": rng.choice(community.extra_people),
            "place": rng.choice(community.extra_places),
            "n": str(rng.randint(3, 90)),
            "y": str(rng.randint(*self._years)),
            "theme": rng.choice(THEMES),
        }


def _cases(nominative: str, accusative: str, possessive: str) -> dict[str, str]:
    """The slots of a sentence for its entity."""
    return {
        "s": nominative,
        "S": nominative[0].upper() + nominative[1:],
        "m": accusative,
        "p": possessive,
        "P": possessive[0].upper() + possessive[1:],
    }


def _finish(sentence: str) -> str:
    """Capitalise, and write "an" before a vowel ("a university" stays)."""
    return sentence[0].upper() + _AN.sub(r"\1n ", sentence[1:])

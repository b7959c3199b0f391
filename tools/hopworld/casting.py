"""Titles and names of each kind of entity, with the aliases and qualifiers that make them hard to tell apart."""

from __future__ import annotations

from random import Random

from tools.hopworld.colour import ROLES
from tools.hopworld.model import Entity
from tools.hopworld.names import Namer

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


def person(namer: Namer, rng: Random, role: str, surname: str = "") -> Entity:
    """Someone with a role; a given `surname` is shared with another person."""
    pronoun = rng.choice(("he", "she"))
    family = surname or namer.surname(rng)
    entity = Entity("person", f"{namer.given(pronoun, rng)} {family}", rng.choice(ROLES[role]), pronoun=pronoun)
    entity.alias, entity.distinct = family, not surname
    return entity


def work(namer: Namer, rng: Random, kind: str, name: str = "") -> Entity:
    """A film, novel or song; a given `name` is the title of another work, so that qualifiers tell them apart."""
    entity = Entity(kind, name or rng.choice(_TITLES[kind]).format(w=namer.stem()), kind)
    entity.alias = entity.name[4:] if entity.name.startswith("The ") else ""
    if name or rng.random() < 0.06:
        entity.title, entity.distinct = f"{entity.name} ({kind})", False
    return entity


def firm(namer: Namer, rng: Random, trade: str) -> Entity:
    """A company of a trade: studio, press, label or yard."""
    noun, patterns = _FIRMS[trade]
    return _with_acronym(Entity("company", _fill(rng.choice(patterns), namer), noun))


def other(namer: Namer, rng: Random, kind: str) -> Entity:
    """An institution, river, award, ship, band or journal."""
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

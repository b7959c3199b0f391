"""Rules and triples joined: one graph with the entities, mentions and relations of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from hopbench.retrieval.graph.extract.profiles import Profile, profiles
from hopbench.retrieval.graph.extract.triples import triple_tables, triples_by_passage
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, ENTITY, MENTIONED_IN, RELATED_TO, entity_id
from hopbench.retrieval.text import Key, Spellings, Tagger
from hopbench.retrieval.types import Chunk, Triple

Tables = Mapping[str, pd.DataFrame]


def with_triples(rules: Tables, chunks: Sequence[Chunk], triples: Sequence[Triple], tagger: Tagger) -> Tables:
    """The rules' tables with what `triples` add, with the columns of `schema`.

    A triple's name that is an alias of one of the rules' entities means that entity. What both know stays as the rules
    have it, but for a type or description that a triple states; a relation that both have gets the higher strength, the
    types and tags of both, and the triples' wording and statements.
    """
    spellings = Spellings.of_titles(chunk.title for chunk in chunks if chunk.title)
    canonical = _canonical(rules[ENTITY], spellings)
    renamed = [
        replace(
            triple,
            subject=canonical.get(spellings.key(triple.subject), triple.subject),
            object=canonical.get(spellings.key(triple.object), triple.object),
        )
        for triple in triples
    ]
    stated = triple_tables(chunks, renamed, tagger, spellings=spellings)
    return {
        ENTITY: _entities(rules[ENTITY], stated[ENTITY], profiles(chunks, triples_by_passage(renamed), spellings)),
        MENTIONED_IN: _first(rules[MENTIONED_IN], stated[MENTIONED_IN], ["source", "target"]),
        RELATED_TO: _related(rules[RELATED_TO], stated[RELATED_TO], tagger),
    }


def _canonical(entities: pd.DataFrame, spellings: Spellings) -> dict[Key, str]:
    """Alias → canonical name, for aliases that are no entity's own name and belong to one entity only."""
    own = {spellings.key(name) for name in entities["name"]}
    names_of: dict[Key, set[str]] = {}
    for name, aliases in zip(entities["name"], entities["aliases"], strict=True):
        for alias in aliases:
            names_of.setdefault(spellings.key(alias), set()).add(name)
    return {alias: names.pop() for alias, names in names_of.items() if alias not in own and len(names) == 1}


def _entities(rules: pd.DataFrame, stated: pd.DataFrame, known: Mapping[Key, Profile]) -> pd.DataFrame:
    """The rules' entities with the types and descriptions that triples state, and those that only triples name."""
    by_id = {entity_id(key): profile for key, profile in known.items()}
    nobody = Profile("")
    entity_profiles = [by_id.get(entity, nobody) for entity in rules["id"]]
    types = [profile.stated_type or own for profile, own in zip(entity_profiles, rules["type"], strict=True)]
    descriptions = [
        profile.stated_description or own or profile.description
        for profile, own in zip(entity_profiles, rules["description"], strict=True)
    ]
    return _first(rules.assign(type=types, description=descriptions), stated, ["id"])


def _first(rules: pd.DataFrame, stated: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    return pd.concat([rules, stated], ignore_index=True).drop_duplicates(key, ignore_index=True)


def _related(rules: pd.DataFrame, stated: pd.DataFrame, tagger: Tagger) -> pd.DataFrame:
    merged = {row[:2]: row for row in rules.itertuples(index=False, name=None)}
    for row in stated.itertuples(index=False, name=None):
        known = merged.get(row[:2])
        merged[row[:2]] = row if known is None else _both(known, row, tagger)
    return pd.DataFrame(list(merged.values()), columns=list(EDGE_COLUMNS[RELATED_TO]))


def _both(known: tuple[Any, ...], stated: tuple[Any, ...], tagger: Tagger) -> tuple[Any, ...]:
    """Two rows of one pair merged: columns source, target, strength, types, description, tags, statements."""
    strength, types = max(known[2], stated[2]), sorted({*known[3], *stated[3]})
    return (*stated[:2], strength, types, stated[4], tagger.top(sorted({*known[5], *stated[5]})), stated[6])

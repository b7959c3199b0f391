"""Triples beside what rules read: one graph with the entities, mentions and relations of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from hopbench.retrieval.graph.extract.names import Key
from hopbench.retrieval.graph.extract.profiles import Profile, profiles
from hopbench.retrieval.graph.extract.triples import triple_tables, triples_by_passage
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, ENTITY, MENTIONED_IN, RELATED_TO, entity_id
from hopbench.retrieval.text import Tagger, name_key
from hopbench.retrieval.types import Chunk, Triple

Tables = Mapping[str, pd.DataFrame]


def with_triples(rules: Tables, chunks: Sequence[Chunk], triples: Sequence[Triple], tagger: Tagger) -> Tables:
    """The rules' tables and what `triples` add to them, with the columns of `schema`.

    A triple's name that is an alias of one of the rules' entities means that entity. What both know stays as the rules
    have it, but for a type or description that a triple states; a relation that both have gets the higher strength, the
    types and tags of both, and the triples' wording and statements.
    """
    canonical = _canonical(rules[ENTITY])
    renamed = [
        replace(
            one,
            subject=canonical.get(name_key(one.subject), one.subject),
            object=canonical.get(name_key(one.object), one.object),
        )
        for one in triples
    ]
    told = triple_tables(chunks, renamed, tagger)
    return {
        ENTITY: _entities(rules[ENTITY], told[ENTITY], profiles(chunks, triples_by_passage(renamed))),
        MENTIONED_IN: _first(rules[MENTIONED_IN], told[MENTIONED_IN], ["source", "target"]),
        RELATED_TO: _related(rules[RELATED_TO], told[RELATED_TO], tagger),
    }


def _canonical(entities: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """Alias → the name it stands for, where it is no entity's own name and stands for one only."""
    own = {name_key(name) for name in entities["name"]}
    found: dict[tuple[str, ...], set[str]] = {}
    for name, aliases in zip(entities["name"], entities["aliases"], strict=True):
        for alias in aliases:
            found.setdefault(name_key(alias), set()).add(name)
    return {alias: names.pop() for alias, names in found.items() if alias not in own and len(names) == 1}


def _entities(rules: pd.DataFrame, told: pd.DataFrame, known: Mapping[Key, Profile]) -> pd.DataFrame:
    """The rules' entities with the types and descriptions that triples state, and those that only triples name."""
    stated = {entity_id(key): profile for key, profile in known.items()}
    nobody = Profile("")
    found = [stated.get(entity, nobody) for entity in rules["id"]]
    types = [one.stated_type or own for one, own in zip(found, rules["type"], strict=True)]
    said = [
        one.stated_description or own or one.description for one, own in zip(found, rules["description"], strict=True)
    ]
    return _first(rules.assign(type=types, description=said), told, ["id"])


def _first(rules: pd.DataFrame, told: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    return pd.concat([rules, told], ignore_index=True).drop_duplicates(key, ignore_index=True)


def _related(rules: pd.DataFrame, told: pd.DataFrame, tagger: Tagger) -> pd.DataFrame:
    merged = {row[:2]: row for row in rules.itertuples(index=False, name=None)}
    for row in told.itertuples(index=False, name=None):
        known = merged.get(row[:2])
        merged[row[:2]] = row if known is None else _both(known, row, tagger)
    return pd.DataFrame(list(merged.values()), columns=list(EDGE_COLUMNS[RELATED_TO]))


def _both(known: tuple[Any, ...], told: tuple[Any, ...], tagger: Tagger) -> tuple[Any, ...]:
    """One relation of two: columns source, target, strength, types, description, tags, statements."""
    strength, types = max(known[2], told[2]), sorted({*known[3], *told[3]})
    return (*told[:2], strength, types, told[4], tagger.top(sorted({*known[5], *told[5]})), told[6])

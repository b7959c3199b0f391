"""The graph from triples, read from a JSONL file or by a language model; alone or joined with the rules' graph.

Types and descriptions of entities (`Profile`) are merged over the passages that state them. One stated by an extractor
or a triple comes before what passages suggest: the qualifier of a title as the type, and as the description the first
sentence of the entity's own passage (the one titled by it). An entity without a passage gets the first sentence that
names it where something is stated about it, or else the fact itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from hopbench.retrieval.graph.extract.names import ALIAS_WEIGHT, TITLE_WEIGHT
from hopbench.retrieval.graph.schema import (
    EDGE_COLUMNS,
    ENTITY,
    MENTIONED_IN,
    NODE_COLUMNS,
    RELATED_TO,
    Statement,
    encoded,
    entity_id,
)
from hopbench.retrieval.text import Key, Spellings, Tagger, fold, sentences, shortened, split_qualifier
from hopbench.retrieval.types import Chunk, Triple

MAX_DESCRIPTION = 300  # characters, of an entity, an edge or a statement


@dataclass(slots=True)
class Profile:
    """The facts that passages state about an entity.

    `own` and `others` are descriptions from its own passage and from others.
    """

    name: str
    titled: str = ""
    types: Counter[str] = field(default_factory=Counter)
    own: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    own_sentence: str = ""
    named_in: str = ""
    fact: str = ""

    @property
    def stated_type(self) -> str:
        """The type stated most often, ties to the alphabetically first; "" if none was."""
        return min(self.types, key=lambda kind: (-self.types[kind], kind), default="")

    @property
    def stated_description(self) -> str:
        """The stated descriptions, own passage first, without repeats, as many as fit in full; "" if there are none."""
        text = ""
        for more in dict.fromkeys([*self.own, *self.others]):
            if not text:
                text = shortened(more, MAX_DESCRIPTION)
            elif len(text) + 1 + len(more) <= MAX_DESCRIPTION:
                text = f"{text} {more}"
        return text

    @property
    def type(self) -> str:
        """The stated type, else the title's qualifier, else "title", or "entity" for a name without a passage."""
        return self.stated_type or self.titled or "entity"

    @property
    def description(self) -> str:
        """The stated description, else a sentence of a passage, else a fact."""
        return self.stated_description or self.own_sentence or self.named_in or self.fact


def profiles(
    chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]], spellings: Spellings
) -> dict[Key, Profile]:
    """All entities with a passage or a triple, by name key, in the order in which chunks name them."""
    by_key: dict[Key, Profile] = {}
    for chunk in chunks:
        subject = spellings.title_key(chunk.title)
        if subject:
            title, qualifier = split_qualifier(chunk.title)
            profile = by_key.setdefault(subject, Profile(title))
            profile.titled = profile.titled or qualifier or "title"
            if chunk.index == 0 and not profile.own_sentence:
                profile.own_sentence = shortened(next(iter(sentences(chunk.text)), ""), MAX_DESCRIPTION)
        for triple in by_passage.get(chunk.passage_id, ()) if chunk.index == 0 else ():
            fact = triple.description or " ".join(filter(None, (triple.subject, triple.relation, triple.object)))
            for name, kind, description in (
                (triple.subject, triple.subject_type, triple.subject_description),
                (triple.object, triple.object_type, triple.object_description),
            ):
                key = spellings.key(name)
                profile = by_key.setdefault(key, Profile(name))
                profile.types.update([kind] if kind else ())
                profile.fact = profile.fact or shortened(fact, MAX_DESCRIPTION)
                if description:
                    (profile.own if key == subject else profile.others).append(description)
    _name(by_key, chunks, by_passage, spellings)
    by_key.pop((), None)
    return by_key


def _name(
    by_key: Mapping[Key, Profile],
    chunks: Sequence[Chunk],
    by_passage: Mapping[str, Sequence[Triple]],
    spellings: Spellings,
) -> None:
    """Find the sentence that names each entity about which nothing else is known."""
    for chunk in chunks:
        keys = set(map(spellings.key, names_of(by_passage.get(chunk.passage_id, ())))) - {()}
        wanted = {
            key: one for key in keys if not ((one := by_key[key]).own or one.others or one.own_sentence or one.named_in)
        }
        read = [(sentence, _words(sentence, spellings)) for sentence in sentences(chunk.text)] if wanted else []
        for key, profile in wanted.items():
            sentence = next((sentence for sentence, words in read if occurrences(words, key)), "")
            profile.named_in = shortened(sentence, MAX_DESCRIPTION)


def _words(text: str, spellings: Spellings) -> list[str]:
    return [token.folded for token in spellings.tokens(text)]


def occurrences(words: Sequence[str], key: Key) -> int:
    """How often the words of a name occur consecutively in `words`, which are folded."""
    if not all(map(str.isascii, key)):
        key = tuple(map(fold, key))
    if key and key[0] not in words:
        return 0
    return sum(tuple(words[i : i + len(key)]) == key for i in range(len(words) - len(key) + 1))


@dataclass(slots=True)
class _Stated:
    """The statements about a pair of names: per (subject, relation, object) the highest confidence and the wordings."""

    statements: dict[tuple[str, str, str], tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    descriptions: list[str] = field(default_factory=list)
    stems: set[str] = field(default_factory=set)

    def state(self, subject: Key, triple: Triple, thing: Key) -> None:
        key = entity_id(subject), triple.relation, entity_id(thing)
        confidence, worded = self.statements.get(key, (0.0, ()))
        self.statements[key] = max(confidence, triple.confidence), (*worded, triple.description)
        self.descriptions.append(triple.description or f"{triple.subject} {triple.relation} {triple.object}")


def triple_tables(
    chunks: Sequence[Chunk],
    triples: Sequence[Triple],
    tagger: Tagger,
    aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
    spellings: Spellings | None = None,
) -> Mapping[str, pd.DataFrame]:
    """Entities, MENTIONED_IN and RELATED_TO from triples, with the columns of `schema`.

    Names with the same words are one entity (`profiles` says of what type and description); every titled passage
    mentions its title entity. Parallel relations merge into one edge: strength is the highest confidence, all relation
    names are listed, and each relation stands among the edge's `statements` in its own direction. A relation's tags are
    the salient stems of its own words and of the sentences that name both ends. `aliases` are other names of a name,
    `spellings` those of the corpus's titles and of what the triples name, unless they are given.
    """
    by_passage = triples_by_passage(triples)
    spellings = spellings or Spellings.of_titles((chunk.title for chunk in chunks if chunk.title), names_of(triples))
    elsewhere = _names_of_split_passages(chunks, by_passage, spellings)
    mentions: list[tuple[str, str, int, float, list[str]]] = []
    relations: defaultdict[tuple[Key, Key], _Stated] = defaultdict(_Stated)
    for chunk in chunks:
        subject = spellings.title_key(chunk.title)
        read = [
            (words, tagger.stem_words(words)) for words in (_words(one, spellings) for one in sentences(chunk.content))
        ]
        mentioned = {subject: None} if subject else {}
        for triple in by_passage[chunk.passage_id]:
            first, second = ends = spellings.key(triple.subject), spellings.key(triple.object)
            if first and second and first != second:
                stated = relations[min(ends), max(ends)]
                stated.state(first, triple, second)
                stated.stems.update(tagger.stems(" ".join((triple.relation, *triple.tags))))
                both = (stems for words, stems in read if occurrences(words, first) and occurrences(words, second))
                stated.stems.update(*both)
            mentioned |= {key: None for key in ends if key and (chunk.id, key) not in elsewhere}
        for key in mentioned:
            counted = [(count, stems) for words, stems in read if (count := occurrences(words, key))]
            weight, count = TITLE_WEIGHT if key == subject else ALIAS_WEIGHT, sum(count for count, _ in counted)
            tags = tagger.top(sorted(set().union(*(stems for _, stems in counted))))
            mentions.append((entity_id(key), chunk.id, max(1, count), weight, tags))
    others = {spellings.key(name): list(known) for name, known in aliases.items()}
    entities = [
        (entity_id(key), one.name, one.type, one.description, others.get(key, []))
        for key, one in profiles(chunks, by_passage, spellings).items()
    ]
    return {
        ENTITY: pd.DataFrame(entities, columns=list(NODE_COLUMNS[ENTITY])),
        MENTIONED_IN: pd.DataFrame(mentions, columns=list(EDGE_COLUMNS[MENTIONED_IN])),
        RELATED_TO: _related_table(relations, tagger),
    }


def triples_by_passage(triples: Sequence[Triple]) -> defaultdict[str, list[Triple]]:
    """Group triples by passage, in an order that does not depend on the input order."""
    by_passage: defaultdict[str, list[Triple]] = defaultdict(list)
    for triple in sorted(triples, key=lambda triple: (triple.subject, triple.relation, triple.object, str(triple))):
        by_passage[triple.passage_id].append(triple)
    return by_passage


def names_of(triples: Sequence[Triple]) -> list[str]:
    """The subjects and objects of triples."""
    return [name for triple in triples for name in (triple.subject, triple.object)]


def _names_of_split_passages(
    chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]], spellings: Spellings
) -> set[tuple[str, Key]]:
    """Chunk and name where only other parts of the passage spell the name out: it is not mentioned there."""
    parts: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        parts[chunk.passage_id].append(chunk)
    elsewhere: set[tuple[str, Key]] = set()
    for passage, together in parts.items():
        if len(together) == 1:
            continue
        words = {chunk.id: _words(chunk.content, spellings) for chunk in together}
        for key in set(map(spellings.key, names_of(by_passage[passage]))):
            without = [chunk for chunk in words if not occurrences(words[chunk], key)]
            if len(without) < len(together):
                elsewhere.update((chunk, key) for chunk in without)
    return elsewhere


def _related_table(relations: Mapping[tuple[Key, Key], _Stated], tagger: Tagger) -> pd.DataFrame:
    """RELATED_TO; a triple with confidence 0 states nothing."""
    rows = []
    for pair, stated in relations.items():
        strength = round(max(confidence for confidence, _ in stated.statements.values()), 6)
        if strength > 0:
            types = sorted({relation for _, relation, _ in stated.statements})
            statements = encoded(
                Statement(subject, relation, thing, _joined(worded), round(10.0 * confidence, 5))
                for (subject, relation, thing), (confidence, worded) in stated.statements.items()
                if confidence > 0
            )
            tags = tagger.top(sorted(stated.stems))
            rows.append(
                (*sorted(map(entity_id, pair)), strength, types, _joined(stated.descriptions), tags, statements)
            )
    return pd.DataFrame(rows, columns=list(EDGE_COLUMNS[RELATED_TO]))


def _joined(texts: Sequence[str]) -> str:
    return shortened("; ".join(dict.fromkeys(text for text in texts if text)), MAX_DESCRIPTION)


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
    rows = []
    for entity, name, kind, description, aliases in rules.itertuples(index=False, name=None):
        profile = by_id.get(entity, Profile(""))
        about = profile.stated_description or description or profile.description
        rows.append((entity, name, profile.stated_type or kind, about, aliases))
    return _first(pd.DataFrame(rows, columns=list(NODE_COLUMNS[ENTITY])), stated, ["id"])


def _first(rules: pd.DataFrame, stated: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    return pd.concat([rules, stated], ignore_index=True).drop_duplicates(key, ignore_index=True)


def _related(rules: pd.DataFrame, stated: pd.DataFrame, tagger: Tagger) -> pd.DataFrame:
    merged: dict[Any, tuple[Any, ...]] = {row[:2]: row for row in rules.itertuples(index=False, name=None)}
    for row in stated.itertuples(index=False, name=None):
        source, target, strength, types, description, tags, statements = row
        if known := merged.get(row[:2]):
            strength, types = max(known[2], strength), sorted({*known[3], *types})
            tags = tagger.top(sorted({*known[5], *tags}))
        merged[row[:2]] = source, target, strength, types, description, tags, statements
    return pd.DataFrame(list(merged.values()), columns=list(EDGE_COLUMNS[RELATED_TO]))

"""The graph from triples, read from a JSONL file or by a language model; alone or joined with the rules' graph.

Types and descriptions of entities (`Profile`) are merged over the passages that state them. One stated by an extractor
or a triple comes before what passages suggest: the qualifier of a title as the type, and as the description the first
sentence of the entity's own passage (the one titled by it). An entity without a passage gets the first sentence that
names it where something is stated about it, or else the fact itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        stated = list(dict.fromkeys([*self.own, *self.others]))
        text = shortened(stated[0], MAX_DESCRIPTION) if stated else ""
        for more in stated[1:]:
            if len(text) + 1 + len(more) <= MAX_DESCRIPTION:
                text = f"{text} {more}"
        return text

    @property
    def has_description(self) -> bool:
        """Whether a description was stated or can be taken from a sentence."""
        return bool(self.own or self.others or self.own_sentence or self.named_in)

    @property
    def type(self) -> str:
        """The stated type, else the title's qualifier, else "title", or "entity" for a name without a passage."""
        return self.stated_type or self.titled or "entity"

    @property
    def description(self) -> str:
        """The stated description, else a sentence of a passage."""
        return self.stated_description or self.own_sentence or self.named_in or self.fact


def first_sentence(text: str) -> str:
    """The first sentence of a text, cut between words: the default description."""
    return shortened(next(iter(sentences(text)), ""), MAX_DESCRIPTION)


def profiles(
    chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]], spellings: Spellings
) -> dict[Key, Profile]:
    """All entities with a passage or a triple, by name key, in the order in which chunks name them."""
    by_key: dict[Key, Profile] = {}
    for chunk in chunks:
        subject = spellings.title_key(chunk.title)
        if subject:
            _title(by_key, subject, chunk)
        if chunk.index == 0:
            for triple in by_passage.get(chunk.passage_id, ()):
                _add_facts(by_key, triple, subject, spellings)
    _name(by_key, chunks, by_passage, spellings)
    by_key.pop((), None)
    return by_key


def _title(by_key: dict[Key, Profile], subject: Key, chunk: Chunk) -> None:
    title, qualifier = split_qualifier(chunk.title)
    profile = by_key.setdefault(subject, Profile(title))
    profile.titled = profile.titled or qualifier or "title"
    if chunk.index == 0:
        profile.own_sentence = profile.own_sentence or first_sentence(chunk.text)


def _add_facts(by_key: dict[Key, Profile], triple: Triple, subject: Key, spellings: Spellings) -> None:
    for name, kind, description in (
        (triple.subject, triple.subject_type, triple.subject_description),
        (triple.object, triple.object_type, triple.object_description),
    ):
        key = spellings.key(name)
        profile = by_key.setdefault(key, Profile(name))
        if kind:
            profile.types[kind] += 1
        profile.fact = profile.fact or shortened(_fact(triple), MAX_DESCRIPTION)
        if description:
            (profile.own if key == subject else profile.others).append(description)


def _fact(triple: Triple) -> str:
    return triple.description or " ".join(filter(None, (triple.subject, triple.relation, triple.object)))


def _name(
    by_key: Mapping[Key, Profile],
    chunks: Sequence[Chunk],
    by_passage: Mapping[str, Sequence[Triple]],
    spellings: Spellings,
) -> None:
    """Find the sentence that names each entity about which nothing else is known."""
    for chunk in chunks:
        names = (name for triple in by_passage.get(chunk.passage_id, ()) for name in (triple.subject, triple.object))
        wanted = {key for key in map(spellings.key, names) if key and not by_key[key].has_description}
        if wanted:
            _read(by_key, wanted, sentences(chunk.text), spellings)


def _read(by_key: Mapping[Key, Profile], wanted: Iterable[Key], text: Sequence[str], spellings: Spellings) -> None:
    read = [(sentence, [token.folded for token in spellings.tokens(sentence)]) for sentence in text]
    for key in wanted:
        sentence = next((sentence for sentence, words in read if occurrences(words, key)), "")
        by_key[key].named_in = shortened(sentence, MAX_DESCRIPTION)


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
        read = [[token.folded for token in spellings.tokens(sentence)] for sentence in sentences(chunk.content)]
        mentioned: Counter[Key] = Counter({subject: 1} if subject else {})
        for triple in by_passage[chunk.passage_id]:
            ends = spellings.key(triple.subject), spellings.key(triple.object)
            if all(ends) and ends[0] != ends[1]:
                _state(relations, ends, triple, read, tagger)
            mentioned.update(key for key in set(ends) if key and (chunk.id, key) not in elsewhere)
        mentions.extend(_mention_rows(chunk, subject, mentioned, read, tagger))
    others = {spellings.key(name): list(known) for name, known in aliases.items()}
    entities = [
        (entity_id(key), profile.name, profile.type, profile.description, others.get(key, []))
        for key, profile in profiles(chunks, by_passage, spellings).items()
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
        words = {chunk.id: [token.folded for token in spellings.tokens(chunk.content)] for chunk in together}
        for key in set(map(spellings.key, names_of(by_passage[passage]))):
            without = [chunk for chunk in words if not occurrences(words[chunk], key)]
            if len(without) < len(together):
                elsewhere.update((chunk, key) for chunk in without)
    return elsewhere


def _state(
    relations: defaultdict[tuple[Key, Key], _Stated],
    ends: tuple[Key, Key],
    triple: Triple,
    read: Sequence[list[str]],
    tagger: Tagger,
) -> None:
    stated = relations[min(ends), max(ends)]
    key = entity_id(ends[0]), triple.relation, entity_id(ends[1])
    confidence, worded = stated.statements.get(key, (0.0, ()))
    stated.statements[key] = max(confidence, triple.confidence), (*worded, triple.description)
    stated.descriptions.append(triple.description or f"{triple.subject} {triple.relation} {triple.object}")
    stated.stems.update(tagger.stems(" ".join((triple.relation, *triple.tags))))
    for words in read:
        if occurrences(words, ends[0]) and occurrences(words, ends[1]):
            stated.stems.update(tagger.stem_words(words))


def _mention_rows(
    chunk: Chunk, subject: Key, mentioned: Mapping[Key, int], read: Sequence[list[str]], tagger: Tagger
) -> Iterator[tuple[str, str, int, float, list[str]]]:
    for key in mentioned:
        counted = [(occurrences(words, key), words) for words in read]
        stems = {stem for count, words in counted if count for stem in tagger.stem_words(words)}
        weight = TITLE_WEIGHT if key == subject else ALIAS_WEIGHT
        count = max(1, sum(count for count, _ in counted))
        yield entity_id(key), chunk.id, count, weight, tagger.top(sorted(stems))


def _related_table(relations: Mapping[tuple[Key, Key], _Stated], tagger: Tagger) -> pd.DataFrame:
    rows = []
    for (first, second), stated in relations.items():
        strength = round(max(confidence for confidence, _ in stated.statements.values()), 6)
        if strength > 0:
            ends = sorted((entity_id(first), entity_id(second)))
            types = sorted({relation for _, relation, _ in stated.statements})
            description = _joined(stated.descriptions)
            tags = tagger.top(sorted(stated.stems))
            rows.append((*ends, strength, types, description, tags, encoded(_statements(stated))))
    return pd.DataFrame(rows, columns=list(EDGE_COLUMNS[RELATED_TO]))


def _statements(stated: _Stated) -> Iterator[Statement]:
    """The statements of an edge; a triple with confidence 0 states nothing."""
    for (subject, relation, thing), (confidence, worded) in stated.statements.items():
        if confidence > 0:
            yield Statement(subject, relation, thing, _joined(worded), round(10.0 * confidence, 5))


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

"""The graph from ready triples: what a JSONL file, or a language model, says each passage states."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pandas as pd

from retrieval.entities import ALIAS_WEIGHT, TITLE_WEIGHT, Key, title_key
from retrieval.graph.schema import EDGE_COLUMNS, ENTITY, MENTIONED_IN, NODE_COLUMNS, RELATED_TO, entity_id
from retrieval.text import Tagger, name_key, sentences, split_qualifier, tokens
from retrieval.types import Chunk, Triple


@dataclass(slots=True)
class _Stated:
    strength: float = 0.0
    types: set[str] = field(default_factory=set)
    descriptions: list[str] = field(default_factory=list)
    stems: set[str] = field(default_factory=set)


def triple_tables(
    chunks: Sequence[Chunk],
    triples: Sequence[Triple],
    tagger: Tagger,
    aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Mapping[str, pd.DataFrame]:
    """Entities, MENTIONED_IN and RELATED_TO from triples, with the columns of `schema`.

    Names with the same words are one entity; every titled passage mentions its title entity. Parallel relations
    merge: strength is the highest confidence, all relation names are listed. A relation's tags are the salient stems
    of its own words and of the sentences that name both ends. `aliases` are other names of a name.
    """
    by_passage: defaultdict[str, list[Triple]] = defaultdict(list)
    for triple in sorted(triples, key=lambda one: (one.subject, one.relation, one.object)):
        by_passage[triple.passage_id].append(triple)
    elsewhere = _names_of_split_passages(chunks, by_passage)
    names: dict[Key, tuple[str, str]] = {}
    mentions: list[tuple[str, str, int, float, list[str]]] = []
    relations: defaultdict[tuple[Key, Key], _Stated] = defaultdict(_Stated)
    for chunk in chunks:
        subject, (title, qualifier) = title_key(chunk.title), split_qualifier(chunk.title)
        if subject:
            names.setdefault(subject, (title, qualifier or "title"))
        read = [(sentence, [token.folded for token in tokens(sentence)]) for sentence in sentences(chunk.content)]
        found: Counter[Key] = Counter({subject: 1} if subject else {})
        for triple in by_passage[chunk.passage_id]:
            ends = name_key(triple.subject), name_key(triple.object)
            told = (triple.subject, triple.subject_type), (triple.object, triple.object_type)
            for key, (name, kind) in zip(ends, told, strict=True):
                names.setdefault(key, (name, kind or "entity"))
            if all(ends) and ends[0] != ends[1]:
                _state(relations, ends, triple, read, tagger)
            found.update(key for key in set(ends) if key and (chunk.id, key) not in elsewhere)
        mentions.extend(_mention_rows(chunk, subject, found, read, tagger))
    names.pop((), None)
    others = {name_key(name): list(known) for name, known in aliases.items()}
    entities: list[tuple[str, str, str, str, list[str]]] = [
        (entity_id(key), name, kind, "", others.get(key, [])) for key, (name, kind) in names.items()
    ]
    return {
        ENTITY: pd.DataFrame(entities, columns=list(NODE_COLUMNS[ENTITY])),
        MENTIONED_IN: pd.DataFrame(mentions, columns=list(EDGE_COLUMNS[MENTIONED_IN])),
        RELATED_TO: _related_table(relations, tagger),
    }


def _names_of_split_passages(
    chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]]
) -> set[tuple[str, Key]]:
    """Chunk and name where only other parts of the passage spell the name out: it is not mentioned there."""
    parts: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        parts[chunk.passage_id].append(chunk)
    found: set[tuple[str, Key]] = set()
    for passage, together in parts.items():
        if len(together) == 1:
            continue
        words = {chunk.id: [token.folded for token in tokens(chunk.content)] for chunk in together}
        for key in {name_key(name) for triple in by_passage[passage] for name in (triple.subject, triple.object)}:
            without = [chunk for chunk in words if not _names(words[chunk], key)]
            if len(without) < len(together):
                found.update((chunk, key) for chunk in without)
    return found


def _state(
    relations: defaultdict[tuple[Key, Key], _Stated],
    ends: tuple[Key, Key],
    triple: Triple,
    read: Sequence[tuple[str, list[str]]],
    tagger: Tagger,
) -> None:
    stated = relations[min(ends), max(ends)]
    stated.strength = max(stated.strength, triple.confidence)
    stated.types.add(triple.relation)
    stated.descriptions.append(triple.description or f"{triple.subject} {triple.relation} {triple.object}")
    stated.stems.update(tagger.stems(" ".join((triple.relation, *triple.tags))))
    for _, words in read:
        if _names(words, ends[0]) and _names(words, ends[1]):
            stated.stems.update(tagger.stem_words(words))


def _names(words: Sequence[str], key: Key) -> int:
    """How often the words of a name stand in a row among `words`."""
    if key and key[0] not in words:
        return 0
    return sum(tuple(words[i : i + len(key)]) == key for i in range(len(words) - len(key) + 1))


def _mention_rows(
    chunk: Chunk, subject: Key, found: Mapping[Key, int], read: Sequence[tuple[str, list[str]]], tagger: Tagger
) -> Iterator[tuple[str, str, int, float, list[str]]]:
    for key in found:
        occurrences = [(_names(words, key), words) for _, words in read]
        stems = {stem for count, words in occurrences if count for stem in tagger.stem_words(words)}
        weight = TITLE_WEIGHT if key == subject else ALIAS_WEIGHT
        count = max(1, sum(count for count, _ in occurrences))
        yield entity_id(key), chunk.id, count, weight, tagger.top(sorted(stems))


def _related_table(relations: Mapping[tuple[Key, Key], _Stated], tagger: Tagger) -> pd.DataFrame:
    rows = [
        (
            *sorted((entity_id(first), entity_id(second))),
            round(stated.strength, 6),
            sorted(stated.types),
            "; ".join(dict.fromkeys(stated.descriptions))[:300],
            tagger.top(sorted(stated.stems)),
        )
        for (first, second), stated in relations.items()
        if stated.strength > 0
    ]
    return pd.DataFrame(rows, columns=list(EDGE_COLUMNS[RELATED_TO]))

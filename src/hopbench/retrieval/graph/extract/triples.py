"""The graph from triples by passage, read from a JSONL file or by a language model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pandas as pd

from hopbench.retrieval.graph.extract.aliases import ALIAS_WEIGHT, TITLE_WEIGHT
from hopbench.retrieval.graph.extract.profiles import occurrences, profiles
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, ENTITY, MENTIONED_IN, NODE_COLUMNS, RELATED_TO, entity_id
from hopbench.retrieval.graph.statements import Statement, encoded
from hopbench.retrieval.text import Key, Spellings, Tagger, sentences, shortened
from hopbench.retrieval.types import Chunk, Triple

MAX_DESCRIPTION = 300  # characters of an edge's or a statement's own


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
    """The triples of each passage, in an order that is their own."""
    by_passage: defaultdict[str, list[Triple]] = defaultdict(list)
    for triple in sorted(triples, key=lambda triple: (triple.subject, triple.relation, triple.object, str(triple))):
        by_passage[triple.passage_id].append(triple)
    return by_passage


def names_of(triples: Sequence[Triple]) -> list[str]:
    """The names that triples state."""
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

"""Entities without a language model: titles, their aliases, and capitalised phrases that recur.

Mentions are found by longest match against the alias table, left to right, a capital required. An unknown run of
capitalised words becomes an entity if it occurs in at least two passages. The rules
are those that measured best on tuning samples of 2WikiMultihopQA, HotpotQA and MuSiQue.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hopbench.retrieval.graph.schema import entity_id
from hopbench.retrieval.text import (
    ENGLISH,
    Key,
    Language,
    Spellings,
    Token,
    clusters,
    exact,
    fold,
    name_key,
    sentences,
    split_qualifier,
)
from hopbench.retrieval.types import Chunk

TITLE_WEIGHT = 1.0
ALIAS_WEIGHT = PHRASE_WEIGHT = 0.7
MAX_NAME_WORDS = 10
NAME_LABELS = frozenset(  # of named entity recognisers: OntoNotes (without numbers and dates) and WikiNER
    "EVENT FAC GPE LANGUAGE LAW LOC MISC NORP ORG PER PERSON PRODUCT WORK_OF_ART".split()
)
_FIRST_NAME = re.compile(
    r"\s*[\"“'`]*\s*((?:The\s+)?[A-Z][^()\n;:]{1,80}?)[\"”'`]*\s*(?:\(|,|\bis\b|\bwas\b|\bare\b|\bwere\b)"
)
_CONNECTORS = frozenset("of the de van von du la le di da for in on al der del".split())
_MONTHS = frozenset(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug"
    " sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday".split()
)

EntityRow = tuple[str, str, str, str, list[str]]
"""A row of the table of entities: id, name, type, description, aliases."""


@dataclass
class AliasTable:
    """Maps name key → (entity key, weight), with a longest-match scan.

    `language` is the corpus's, `spellings` the keys of its titles; `lengths` are those of the aliases that begin with a
    word, longest first.
    """

    spellings: Spellings = field(default_factory=Spellings)
    language: Language = ENGLISH
    entries: dict[Key, tuple[Key, float]] = field(default_factory=dict)
    lengths: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(self, alias: Key, entity: Key, weight: float) -> None:
        """Let `alias` name `entity`; the first entry of an alias wins."""
        if alias and len(alias) <= MAX_NAME_WORDS and alias not in self.entries:
            self.entries[alias] = (entity, weight)
            first = fold(alias[0])
            self.lengths[first] = tuple(sorted({*self.lengths.get(first, ()), len(alias)}, reverse=True))

    def candidates(self, words: Sequence[Token], start: int) -> Iterator[tuple[int, Key, float]]:
        """Matches that begin at `start`, longest first, as spelt or else without accents: (length, entity, weight)."""
        for length in self.lengths.get(words[start].folded, ()):
            name = words[start : start + length]
            if len(name) < length:
                continue
            entry = self.entries.get(tuple(exact(word.text) for word in name)) if self.spellings.apart else None
            entry = entry or self.entries.get(tuple(word.folded for word in name))
            if entry is not None:
                yield length, *entry

    def aliases(self) -> dict[Key, list[Key]]:
        """Entity key → its aliases beyond its own name, sorted."""
        aliases: defaultdict[Key, list[Key]] = defaultdict(list)
        for alias, (entity, _) in self.entries.items():
            if alias != entity:
                aliases[entity].append(alias)
        return {entity: sorted(names) for entity, names in aliases.items()}


def _aliases_of(chunk: Chunk, base: Key, stop: frozenset[str]) -> Iterator[Key]:
    name, _ = split_qualifier(chunk.title)
    place, comma, rest = name.partition(",")
    if comma and " of " not in rest:  # "Tulsa, Oklahoma" is Tulsa; "John, King of England" is not every John
        yield name_key(place)
    match = _FIRST_NAME.match(chunk.text)
    if match and len(sentences(match.group(1))) == 1:
        alias = name_key(match.group(1))
        if 2 <= len(alias) <= 7 and set(alias) & set(base) - stop:
            yield alias
    if base and base[0] in ("the", "a", "an") and len(base) > 2:
        yield base[1:]


def alias_table(chunks: Iterable[Chunk], language: Language = ENGLISH) -> AliasTable:
    """Build the table of titles (weight 1) and their aliases (0.7); aliases of more than two entities are dropped."""
    titled = [chunk for chunk in chunks if chunk.index == 0 and chunk.title]
    table = AliasTable(Spellings.of_titles(chunk.title for chunk in titled), language)
    entities_of: defaultdict[Key, set[Key]] = defaultdict(set)
    first_parts = [(chunk, table.spellings.title_key(chunk.title)) for chunk in titled]
    for _, base in first_parts:
        table.add(base, base, TITLE_WEIGHT)
    for key in sorted(table.spellings.apart):
        table.add(tuple(map(fold, key)), key, TITLE_WEIGHT)
    for chunk, base in first_parts:
        for alias in _aliases_of(chunk, base, language.stop):
            if alias and alias not in table.entries:
                entities_of[alias].add(base)
    for alias, entities in sorted(entities_of.items()):
        if len(entities) <= 2:
            table.add(alias, min(entities), ALIAS_WEIGHT)
    return table


class Mention(NamedTuple):
    """A name in a chunk: its place in words (sentence 0 is the title), and the confidence in the match.

    The weight is 1 for a title, 0.7 for an alias or a phrase.
    """

    sentence: int
    start: int
    length: int
    key: Key
    weight: float


@dataclass(slots=True)
class ReadChunk:
    """A chunk split into sentences and words; sentence 0 is the title. `phrases` may turn out to be names."""

    chunk: Chunk
    subject: Key
    sentences: list[str]
    words: list[list[Token]]
    mentions: list[Mention] = field(default_factory=list)
    phrases: list[Mention] = field(default_factory=list)


def read_chunk(chunk: Chunk, table: AliasTable) -> ReadChunk:
    """Find the mentions and the name-like phrases of one chunk."""
    parts = [chunk.title, *sentences(chunk.text)]
    spellings = table.spellings
    read = ReadChunk(chunk, spellings.title_key(chunk.title), parts, [spellings.tokens(part) for part in parts])
    if read.subject:
        read.mentions.append(Mention(0, 0, len(read.words[0]), read.subject, TITLE_WEIGHT))
    for number, words in enumerate(read.words):
        _read_sentence(read, number, words, table)
    return read


def _read_sentence(read: ReadChunk, number: int, words: list[Token], table: AliasTable) -> None:
    folded = tuple(word.folded for word in words)
    position = phrase_end = 0
    while position < len(words):
        hit = _match(words, position, table, () if number else read.subject)
        end = position
        if position >= phrase_end and words[position].text[0].isupper() and folded[position] not in table.language.stop:
            end = phrase_end = _phrase_end(words, position)
        phrase = Mention(number, position, end - position, folded[position:end], PHRASE_WEIGHT)
        if hit is None:
            if _is_phrase(words, position, end, table.language) and (number or phrase.key != read.subject):
                read.phrases.append(phrase)
            position += 1
            continue
        length, key, weight = hit
        read.mentions.append(Mention(number, position, length, key, weight))
        stop = position + length
        for start in range(position + 1, stop):  # "Greenfield, Indiana" names Indiana, too
            if words[start].breaks and words[start].text[0].isupper():
                part, entry = folded[start:stop], table.entries.get(folded[start:stop])
                if entry is None:
                    read.phrases.append(Mention(number, start, stop - start, part, PHRASE_WEIGHT))
                elif entry[0] not in (key, read.subject):
                    read.mentions.append(Mention(number, start, stop - start, entry[0], entry[1] * ALIAS_WEIGHT))
        if stop < end <= position + 6:
            read.phrases.append(phrase)
        position = stop


def _match(words: list[Token], start: int, table: AliasTable, own: Key) -> tuple[int, Key, float] | None:
    """The longest match at `start` but of the name `own`; a single word must be able to stand alone."""
    first, stop = words[start], table.language.stop
    if not first.capital and first.folded in stop:
        return None
    for length, key, weight in table.candidates(words, start):
        if key == own:
            continue
        if length > 1:
            is_name = any(word.capital or word.uncased for word in words[start : start + length])
        elif first.capital:
            is_name = not first.text[0].isdigit() and len(first.text) > 2 and first.folded not in stop
        else:
            is_name = first.uncased and len(clusters(first.text)) > 1
        if is_name:
            return length, key, weight
    return None


def _phrase_end(words: list[Token], start: int) -> int:
    """The end of the run of capitalised words that begins at `start`; it may contain "of the"."""
    end = start + 1
    while end < len(words) and not words[end].breaks:
        if words[end].capital:
            end += 1
        elif (
            words[end].folded in _CONNECTORS
            and end + 1 < len(words)
            and not words[end + 1].breaks
            and words[end + 1].text[0].isupper()
        ):
            end += 2
        else:
            break
    return end


def _is_phrase(words: list[Token], start: int, end: int, language: Language) -> bool:
    """False for dates, and for single words at a sentence's start or in languages that capitalise nouns."""
    length = end - start
    if not 1 <= length <= 6 or all(w.folded in _MONTHS or w.text[0].isdigit() for w in words[start:end]):
        return False
    return length > 1 or (start > 0 and len(words[start].text) > 3 and not language.capital_nouns)


FirstPhrase = tuple[Key, str, str, bool]
"""A phrase with its first passage and spelling, and whether it recurs in another passage."""


def phrases_of(read: Iterable[ReadChunk]) -> Iterator[FirstPhrase]:
    """The phrases of some chunks, as often as they occur."""
    for chunk in read:
        for sentence, start, length, key, _ in chunk.phrases:
            words = chunk.words[sentence][start : start + length]
            yield key, chunk.chunk.passage_id, " ".join(word.text for word in words), False


def first_phrases(phrases: Iterable[FirstPhrase]) -> list[FirstPhrase]:
    """Merge equal phrases, in order of appearance."""
    firsts: dict[Key, FirstPhrase] = {}
    for phrase in phrases:
        key, passage, _, recurs = phrase
        first = firsts.setdefault(key, phrase)
        if not first[3] and (recurs or first[1] != passage):
            firsts[key] = (*first[:3], True)
    return list(firsts.values())


def keep_phrases(read: Iterable[ReadChunk], names: Mapping[Key, str]) -> None:
    """Turn the phrases that are names into mentions, and drop the others."""
    for chunk in read:
        chunk.mentions.extend(phrase for phrase in chunk.phrases if phrase.key in names)
        chunk.phrases.clear()
        chunk.mentions.sort()


def titled_entities(read: Iterable[ReadChunk], table: AliasTable) -> dict[Key, EntityRow]:
    """The entities that are titles of passages, by key."""
    aliases = table.aliases()
    entities: dict[Key, EntityRow] = {}
    for chunk in read:
        key = chunk.subject
        if chunk.chunk.index == 0 and key and key not in entities:
            name, qualifier = split_qualifier(chunk.chunk.title)
            description = chunk.sentences[1][:300] if len(chunk.sentences) > 1 else ""
            known = [" ".join(alias) for alias in aliases.get(key, ())]
            entities[key] = (entity_id(key), name, qualifier or "title", description, known)
    return entities

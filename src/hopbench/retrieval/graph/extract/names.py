"""Entities without a language model: titles, their aliases, and capitalised phrases that recur.

Mentions are found by longest match against the alias table, left to right, a capital required. An unknown run of
capitalised words becomes an entity if it occurs in at least two passages. The rules
are those that measured best on tuning samples of 2WikiMultihopQA, HotpotQA and MuSiQue.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
ALIAS_WEIGHT = 0.7
MAX_NAME_WORDS = 10
_FIRST_NAME = re.compile(
    r"\s*[\"“'`]*\s*((?:The\s+)?[A-Z][^()\n;:]{1,80}?)[\"”'`]*\s*(?:\(|,|\bis\b|\bwas\b|\bare\b|\bwere\b)"
)


class AliasTable:
    """Maps name key → (entity key, weight), with a longest-match scan.

    `language` is the corpus's, `spellings` the keys of its titles.
    """

    def __init__(self, spellings: Spellings | None = None, language: Language = ENGLISH) -> None:
        self.spellings, self.language = spellings or Spellings(), language
        self._entries: dict[Key, tuple[Key, float]] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}  # first word → lengths of its aliases, longest first

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> tuple[Key, float] | None:
        """The entity of a name key, with the weight of the match; None for an unknown name."""
        return self._entries.get(key)

    def add(self, alias: Key, entity: Key, weight: float) -> None:
        """Let `alias` name `entity`; the first entry of an alias wins."""
        if alias and len(alias) <= MAX_NAME_WORDS and alias not in self._entries:
            self._entries[alias] = (entity, weight)
            first = fold(alias[0])
            known = self._lengths.get(first, ())
            self._lengths[first] = tuple(sorted({*known, len(alias)}, reverse=True))

    def candidates(self, words: Sequence[Token], start: int) -> Iterator[tuple[int, Key, float]]:
        """Matches that begin at `start`, longest first: (length, entity, weight)."""
        for length in self._lengths.get(words[start].folded, ()):
            if start + length <= len(words):
                entry = self._entry(words[start : start + length])
                if entry is not None:
                    yield length, *entry

    def _entry(self, words: Sequence[Token]) -> tuple[Key, float] | None:
        """The entry of some words as spelt, else without accents."""
        if self.spellings.apart and (entry := self._entries.get(tuple(exact(word.text) for word in words))):
            return entry
        return self._entries.get(tuple(word.folded for word in words))

    def aliases(self) -> dict[Key, list[Key]]:
        """Entity key → its aliases beyond its own name, sorted."""
        aliases: defaultdict[Key, list[Key]] = defaultdict(list)
        for alias, (entity, _) in self._entries.items():
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
            if alias and alias not in table:
                entities_of[alias].add(base)
    for alias, entities in sorted(entities_of.items()):
        if len(entities) <= 2:
            table.add(alias, min(entities), ALIAS_WEIGHT)
    return table


PHRASE_WEIGHT = 0.7
NAME_LABELS = frozenset(  # of named entity recognisers: OntoNotes (without numbers and dates) and WikiNER
    "EVENT FAC GPE LANGUAGE LAW LOC MISC NORP ORG PER PERSON PRODUCT WORK_OF_ART".split()
)
_CONNECTORS = frozenset("of the de van von du la le di da for in on al der del".split())
_MONTHS = frozenset(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug"
    " sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday".split()
)


class Span(NamedTuple):
    """The position of a name: sentence 0 is the title; `start` and `length` count words within the sentence."""

    sentence: int
    start: int
    length: int


class Mention(NamedTuple):
    """An entity named in a chunk; `weight` is the confidence in the match (1 title, 0.7 alias or phrase)."""

    key: Key
    span: Span
    weight: float


@dataclass(slots=True)
class ReadChunk:
    """A chunk split into sentences and words; sentence 0 is the title."""

    chunk: Chunk
    subject: Key
    sentences: list[str]
    words: list[list[Token]]
    mentions: list[Mention] = field(default_factory=list)
    phrases: list[tuple[Key, Span]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Named:
    """An entity before it becomes a node."""

    key: Key
    name: str
    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()


def read_chunk(chunk: Chunk, table: AliasTable) -> ReadChunk:
    """Find the mentions and the name-like phrases of one chunk."""
    parts = [chunk.title, *sentences(chunk.text)]
    spellings = table.spellings
    read = ReadChunk(chunk, spellings.title_key(chunk.title), parts, [spellings.tokens(part) for part in parts])
    if read.subject:
        read.mentions.append(Mention(read.subject, Span(0, 0, len(read.words[0])), TITLE_WEIGHT))
    for number, words in enumerate(read.words):
        _read_sentence(read, number, words, table)
    return read


def _read_sentence(read: ReadChunk, number: int, words: list[Token], table: AliasTable) -> None:
    position = phrase_end = 0
    stop = table.language.stop
    while position < len(words):
        hit = _match(words, position, table, () if number else read.subject)
        end = position
        if position >= phrase_end and words[position].text[0].isupper() and words[position].folded not in stop:
            end = phrase_end = _phrase_end(words, position)
        if hit is None:
            phrase = _key(words, position, end)
            if _is_phrase(words, position, end, table.language) and (number or phrase != read.subject):
                read.phrases.append((phrase, Span(number, position, end - position)))
            position += 1
            continue
        length, key, weight = hit
        read.mentions.append(Mention(key, Span(number, position, length), weight))
        _parts_after_comma(read, number, words, position, length, key, table)
        if position + length < end <= position + 6:
            read.phrases.append((_key(words, position, end), Span(number, position, end - position)))
        position += length


def _match(words: list[Token], start: int, table: AliasTable, own: Key) -> tuple[int, Key, float] | None:
    first = words[start]
    stop = table.language.stop
    if not first.capital and first.folded in stop:
        return None
    for length, key, weight in table.candidates(words, start):
        if key == own:
            continue
        if length == 1:
            if not _stands_alone(first) or first.folded in stop:
                continue
        elif not any(word.capital or word.uncased for word in words[start : start + length]):
            continue
        return length, key, weight
    return None


def _stands_alone(word: Token) -> bool:
    """Whether a word can be a name by itself: three letters from a capital on, or two of a script without capitals."""
    if word.capital:
        return not word.text[0].isdigit() and len(word.text) > 2
    return word.uncased and len(clusters(word.text)) > 1


def _parts_after_comma(
    read: ReadChunk, number: int, words: list[Token], start: int, length: int, key: Key, table: AliasTable
) -> None:
    """Read "Greenfield, Indiana" as naming Indiana too."""
    for offset in range(1, length):
        word = words[start + offset]
        if not (word.breaks and word.text[0].isupper()):
            continue
        part = _key(words, start + offset, start + length)
        span = Span(number, start + offset, length - offset)
        entry = table.get(part)
        if entry is None:
            read.phrases.append((part, span))
        elif entry[0] not in (key, read.subject):
            read.mentions.append(Mention(entry[0], span, entry[1] * ALIAS_WEIGHT))


def _key(words: list[Token], start: int, end: int) -> Key:
    return tuple(word.folded for word in words[start:end])


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


class Phrases:
    """Counts which phrases of a corpus recur in a second passage, and keeps each one's first spelling."""

    def __init__(self) -> None:
        self._first: dict[Key, tuple[str, str]] = {}  # passage and spelling
        self._recurring: set[Key] = set()

    def add(self, read: Iterable[ReadChunk]) -> None:
        """Count the phrases of more chunks."""
        for chunk in read:
            passage = chunk.chunk.passage_id
            for key, span in chunk.phrases:
                first = self._first.get(key)
                if first is None:
                    words = chunk.words[span.sentence][span.start : span.start + span.length]
                    self._first[key] = passage, " ".join(word.text for word in words)
                elif first[0] != passage:
                    self._recurring.add(key)

    def firsts(self) -> Iterator[tuple[Key, str, str, bool]]:
        """Each phrase with its first passage and spelling, and whether it recurs in another passage."""
        return ((key, *first, key in self._recurring) for key, first in self._first.items())

    def join(self, firsts: Iterable[tuple[Key, str, str, bool]]) -> None:
        """Merge the `firsts` of later chunks."""
        for key, passage, spelling, recurring in firsts:
            first = self._first.setdefault(key, (passage, spelling))
            if recurring or first[0] != passage:
                self._recurring.add(key)

    def names(self) -> dict[Key, str]:
        """The phrases in at least two passages, with their first spelling, in order of appearance."""
        return {key: spelling for key, (_, spelling) in self._first.items() if key in self._recurring}


def keep_phrases(read: Iterable[ReadChunk], names: Mapping[Key, str]) -> None:
    """Turn the phrases that are names into mentions, and drop the others."""
    for chunk in read:
        chunk.mentions.extend(Mention(key, span, PHRASE_WEIGHT) for key, span in chunk.phrases if key in names)
        chunk.phrases.clear()
        chunk.mentions.sort(key=lambda mention: (mention.span, mention.key))


def titled_entities(read: Iterable[ReadChunk], table: AliasTable) -> dict[Key, Named]:
    """The entities that are titles of passages, by key."""
    aliases = table.aliases()
    entities: dict[Key, Named] = {}
    for chunk in read:
        if chunk.chunk.index == 0 and chunk.subject and chunk.subject not in entities:
            name, qualifier = split_qualifier(chunk.chunk.title)
            description = chunk.sentences[1][:300] if len(chunk.sentences) > 1 else ""
            known = tuple(" ".join(alias) for alias in aliases.get(chunk.subject, ()))
            entities[chunk.subject] = Named(chunk.subject, name, qualifier or "title", description, known)
    return entities


def named_entities(
    titled: Mapping[Key, Named], phrases: Mapping[Key, str], types: Mapping[Key, str]
) -> Iterator[Named]:
    """The entities of a corpus, titles first, then phrases (of the types known); each key once."""
    yield from titled.values()
    yield from (Named(key, name, types.get(key, "phrase")) for key, name in phrases.items() if key not in titled)


def mention_counts(read: ReadChunk) -> Counter[Key]:
    """How often each entity is named in a chunk (the title counts once)."""
    return Counter(mention.key for mention in read.mentions)

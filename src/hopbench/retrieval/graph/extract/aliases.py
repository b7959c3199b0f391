"""The names of titled entities: their titles, the aliases of these, and a table that finds them in text.

The rules follow what was measured best on 2WikiMultihopQA, HotpotQA and MuSiQue tuning samples.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from hopbench.retrieval.text import (
    ENGLISH,
    Key,
    Language,
    Spellings,
    Token,
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
    """Name key → entity key and weight, with a longest-match scan.

    `language` is the corpus's, `spellings` the keys of its titles.
    """

    def __init__(self, spellings: Spellings | None = None, language: Language = ENGLISH) -> None:
        self.spellings, self.language = spellings or Spellings(), language
        self._entries: dict[Key, tuple[Key, float]] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}  # of the aliases that begin with a word, longest first

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> tuple[Key, float] | None:
        """The entity of a name key, with the weight of the match; None for an unknown name."""
        return self._entries.get(key)

    def add(self, alias: Key, entity: Key, weight: float) -> None:
        """Let `alias` name `entity`; the first entry of an alias stays."""
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
        """The entry of some words as they are spelt, else without accents."""
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
    """Titles (weight 1) and their aliases (.7), an alias that fits more than two entities dropped."""
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

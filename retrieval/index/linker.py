"""Which entities of the graph a question names: longest match of its words against all names, aliases and titles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hopbench.retrieval.graph.extract.aliases import ALIAS_WEIGHT, TITLE_WEIGHT
from hopbench.retrieval.graph.extract.names import NAME_LABELS, PHRASE_WEIGHT
from hopbench.retrieval.text import STOP_WORDS, Token, name_key, split_qualifier, tokens

MAX_WORDS = 12


class Uncapitalised(NamedTuple):
    """Ids of entities that link in lower case: `always`, or `alone`, where a question names nothing else."""

    always: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()


NONE = Uncapitalised()


@dataclass(frozen=True, slots=True)
class Link:
    """A name in a question: words `start`..`end` mean `entity`; `chunks` are those of a full, qualified title."""

    entity: str
    weight: float
    start: int
    end: int
    chunks: tuple[str, ...] = ()


class Linker:
    """Reads questions against the graph's names.

    A full title with its parenthesis is tried first, then titles and aliases, then phrases. A single word must be
    capitalised and no stop word; of several words one must be, unless the question has no capitals at all. Entities
    that are `uncapitalised` link however they are written, always or where nothing else links.
    """

    def __init__(
        self,
        names: Sequence[tuple[str, str, str, Sequence[str]]],
        titles: Sequence[tuple[str, str]],
        uncapitalised: Uncapitalised = NONE,
    ) -> None:
        """`names` are (entity id, name, type, aliases); `titles` are (chunk id, title)."""
        self._uncapitalised = uncapitalised
        self._names: dict[tuple[str, ...], tuple[str, float]] = {}
        self._full: dict[tuple[str, ...], list[str]] = {}
        self._title_entity: dict[tuple[str, ...], str] = {}
        self._longest_from: dict[str, int] = {}
        self.name_of: dict[str, str] = {}
        self._keys_of: dict[str, list[tuple[str, ...]]] = {}
        for entity, name, kind, aliases in sorted(names):
            self.name_of[entity] = name
            key, *others = self._keys_of[entity] = [name_key(one) for one in (name, *aliases)]
            phrase = kind == "phrase" or kind in NAME_LABELS
            self._offer(key, entity, PHRASE_WEIGHT if phrase else TITLE_WEIGHT)
            for other in others:
                self._offer(other, entity, ALIAS_WEIGHT)
        for chunk, title in sorted(titles):
            if split_qualifier(title)[1]:
                self._full.setdefault(name_key(title), []).append(chunk)
                self._title_entity[name_key(title)] = "e:" + " ".join(name_key(split_qualifier(title)[0]))
        for key in (*self._names, *self._full):
            if key:
                self._longest_from[key[0]] = max(self._longest_from.get(key[0], 0), len(key))

    def _offer(self, key: tuple[str, ...], entity: str, weight: float) -> None:
        if key and weight > self._names.get(key, ("", 0.0))[1]:
            self._names[key] = entity, weight

    def resolve(self, name: str) -> str | None:
        """The entity with this name or alias, ignoring case and accents; None if the graph has none."""
        return self._names.get(name_key(name), (None, 0.0))[0]

    def names_of(self, entity: str) -> Sequence[tuple[str, ...]]:
        """The words of an entity's name and of its aliases, in comparable form."""
        return self._keys_of.get(entity, ())

    def links(self, question: str, max_words: int = MAX_WORDS) -> list[Link]:
        """The names in a question, left to right, without overlaps; at each word the longest match."""
        words = tokens(question)
        always, alone = self._uncapitalised
        return self._links(words, max_words, always) or (self._links(words, max_words, alone) if alone else [])

    def _links(self, words: Sequence[Token], max_words: int, small: Collection[str]) -> list[Link]:
        capitals = any(word.capital for word in words[1:])
        links: list[Link] = []
        start = 0
        while start < len(words):
            link = self._longest(words, start, max_words, capitals, small)
            if link is not None:
                links.append(link)
            start = link.end if link is not None else start + 1
        return links

    def _longest(
        self, words: Sequence[Token], start: int, max_words: int, capitals: bool, small: Collection[str]
    ) -> Link | None:
        longest = self._longest_from.get(words[start].folded, 0)
        for length in range(min(max_words, len(words) - start, longest), 0, -1):
            span = words[start : start + length]
            key = tuple(word.folded for word in span)
            if key in self._full:
                return Link(self._title_entity[key], TITLE_WEIGHT, start, start + length, tuple(self._full[key]))
            known = self._names.get(key)
            if known is not None and _looks_like_a_name(span, start, capitals, known[0] in small):
                return Link(*known, start, start + length)
        return None


def _looks_like_a_name(span: Sequence[Token], start: int, capitals: bool, small: bool) -> bool:
    if all(word.folded in STOP_WORDS for word in span) and not all(word.text[0].isupper() for word in span):
        return False
    if len(span) == 1:
        word = span[0]
        written = word.text[0].isupper() or (small and word.text[0].isalpha())
        return written and word.folded not in STOP_WORDS and len(word.folded) > 2
    if small:
        return True
    named = any(word.capital and (start + i > 0 or word.folded not in STOP_WORDS) for i, word in enumerate(span))
    return named or (not capitals and sum(word.folded not in STOP_WORDS for word in span) > 1)

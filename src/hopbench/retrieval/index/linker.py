"""Links question words to the graph's entities, and the optional services of a language model that strategies use."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from hopbench.retrieval.graph.extract.names import ALIAS_WEIGHT, NAME_LABELS, PHRASE_WEIGHT, TITLE_WEIGHT
from hopbench.retrieval.graph.schema import entity_id
from hopbench.retrieval.support.arrays import mapped_array
from hopbench.retrieval.support.texts import RowValues, TextIndex, Texts, TextsWriter, write_index
from hopbench.retrieval.text import (
    ENGLISH,
    Language,
    Spellings,
    Token,
    clusters,
    exact,
    fold,
    name_key,
    split_qualifier,
)
from hopbench.retrieval.types import Counters, Question

MAX_WORDS = 12
STEMS, ROWS, WEIGHTS, REST = ("entity", "name", "key"), "rows.npy", "weights.npy", "rest.json"  # of what is saved


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
    that are `uncapitalised` link however they are written, always or where nothing else links. In scripts without
    capitals a name of two letters or more links as it stands. Where names differ in accents or signs only, the
    spelling of the question decides.

    It is made from names (entity id, name, type, aliases) and titles (chunk id, title). `entities` are the ids of all,
    sorted, and `names` theirs in the same order; by id, `row_of` says where one stands.
    """

    def __init__(
        self,
        names: Sequence[tuple[str, str, str, Sequence[str]]],
        titles: Sequence[tuple[str, str]],
        uncapitalised: Uncapitalised = NONE,
        language: Language = ENGLISH,
    ) -> None:
        self._uncapitalised, self.language = uncapitalised, language
        self._full: dict[str, list[str]] = {}
        self._title_entity: dict[str, str] = {}
        self._longest_from: dict[str, int] = {}
        self.read = len(names) + len(titles)
        self.name_of: Mapping[str, str] = {entity: name for entity, name, _, _ in sorted(names)}
        self.entities: Sequence[str] | Texts = list(self.name_of)
        self.names: Sequence[str] | Texts = list(self.name_of.values())
        self.row_of: Mapping[str, int] = {entity: row for row, entity in enumerate(self.entities)}
        self._aliases = {entity: list(aliases) for entity, _, _, aliases in names if len(aliases)}
        self._spellings = Spellings(self.names, (alias for aliases in self._aliases.values() for alias in aliases))
        named = _best_entities(names, self._spellings)
        self._entity: Mapping[str, str] = {key: entity for key, (entity, _) in named.items()}  # by words of a name
        self._weight: Mapping[str, float] = {key: weight for key, (_, weight) in named.items()}
        for chunk, title in sorted(titles):
            name, qualifier = split_qualifier(title)
            if qualifier:
                full, own = " ".join(name_key(title)), self._spellings.key(name)
                self._full.setdefault(full, []).append(chunk)
                # Of an entity that the graph does not know, the id that it would have.
                known = self._entity.get(" ".join(own)) if own in self._spellings.apart else None
                self._title_entity[full] = known or entity_id(own)
        for key in (*self._entity, *self._full):
            first, *rest = key.split(" ")
            first = fold(first)
            self._longest_from[first] = max(self._longest_from.get(first, 0), 1 + len(rest))

    def save(self, folder: Path) -> None:
        """Write into an empty folder what the linker has made of the names: reading that takes no time."""
        for stem, texts in zip(STEMS, (self.entities, self.names, self._entity), strict=True):
            with TextsWriter(folder / stem) as column:
                column.add([*texts])
        np.save(folder / ROWS, np.array([self.row_of[entity] for entity in self._entity.values()], np.int32))
        np.save(folder / WEIGHTS, np.array([self._weight[key] for key in self._entity], np.float64))
        for stem in ("entity", "key"):
            write_index(Texts(folder / stem), folder / stem)
        always, alone = map(sorted, self._uncapitalised)
        held = {
            "read": self.read,
            "aliases": self._aliases,
            "full": self._full,
            "titles": self._title_entity,
            "longest": self._longest_from,
            "uncapitalised": [always, alone],
            "language": self.language.code,
            "spellings": self._spellings.saved(),
        }
        (folder / REST).write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The linker that was saved; its names are memory-mapped."""
        held = json.loads((folder / REST).read_text(encoding="utf-8", errors="surrogatepass"))
        rows, weights = (mapped_array(folder / name) for name in (ROWS, WEIGHTS))
        entities, names, keys = (Texts(folder / stem) for stem in STEMS)
        by_key = TextIndex(keys, folder / "key")
        linker = cls((), (), Uncapitalised(*map(frozenset, held["uncapitalised"])), Language(held["language"]))
        linker._spellings = Spellings.of_saved(held["spellings"])
        linker.read, linker._aliases = held["read"], held["aliases"]
        by_id = TextIndex(entities, folder / "entity")
        linker.entities, linker.names, linker.row_of = entities, names, RowValues(by_id, int)
        linker.name_of = RowValues(by_id, names.__getitem__)
        linker._entity = RowValues(by_key, lambda row: entities[int(rows[row])])
        linker._weight = RowValues(by_key, lambda row: float(weights[row]))
        linker._full, linker._title_entity, linker._longest_from = held["full"], held["titles"], held["longest"]
        return linker

    def resolve(self, name: str) -> str | None:
        """The entity with this name or alias, ignoring case and accents; None if the graph has none."""
        return self._entity.get(" ".join(self._spellings.key(name)), self._entity.get(" ".join(name_key(name))))

    def of_title(self, title: str) -> str | None:
        """The entity of a passage's title, without its qualifier."""
        return self._entity.get(" ".join(self._spellings.title_key(title)))

    def tokens(self, question: str) -> list[Token]:
        """The words of a question, which links count."""
        return self._spellings.tokens(question)

    def names_of(self, entity: str) -> Sequence[tuple[str, ...]]:
        """The words of an entity's name and of its aliases, in comparable form."""
        name = self.name_of.get(entity)
        if name is None:
            return ()
        return [name_key(one) for one in (name, *self._aliases.get(entity, ()))]

    def links(self, question: str, max_words: int = MAX_WORDS) -> list[Link]:
        """The names in a question, left to right, without overlaps; at each word the longest match."""
        words = self.tokens(question)
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
            key = " ".join(word.folded for word in span)
            if self._spellings.apart and (spelled := tuple(exact(word.text) for word in span)) in self._spellings.apart:
                key = " ".join(spelled)
            if key in self._full:
                return Link(self._title_entity[key], TITLE_WEIGHT, start, start + length, tuple(self._full[key]))
            known = self._entity.get(key)
            if known is not None and self._looks_like_a_name(span, start, capitals, known in small):
                return Link(known, self._weight[key], start, start + length)
        return None

    def _looks_like_a_name(self, span: Sequence[Token], start: int, capitals: bool, small: bool) -> bool:
        stop = self.language.stop
        if all(word.folded in stop for word in span) and not all(word.text[0].isupper() for word in span):
            return False
        if len(span) == 1:
            word = span[0]
            if word.uncased:
                return len(clusters(word.folded)) > 1
            written = word.text[0].isupper() or (small and word.text[0].isalpha())
            return written and word.folded not in stop and len(word.folded) > 2
        if small:
            return True
        named = any(
            (word.capital or word.uncased) and (start + i > 0 or word.folded not in stop) for i, word in enumerate(span)
        )
        return named or (not capitals and sum(word.folded not in stop for word in span) > 1)


def _best_entities(
    names: Sequence[tuple[str, str, str, Sequence[str]]], spellings: Spellings
) -> dict[str, tuple[str, float]]:
    """Words of a name, in comparable form → the entity that they name best, and how surely."""
    best: dict[str, tuple[str, float]] = {}
    loose: list[tuple[str, str, float]] = []
    for entity, name, kind, aliases in sorted(names):
        weight = PHRASE_WEIGHT if kind == "phrase" or kind in NAME_LABELS else TITLE_WEIGHT
        own = spellings.key(name)
        if own in spellings.apart:
            loose.append((" ".join(name_key(name)), entity, weight))
        others = (" ".join(spellings.key(alias)) for alias in aliases)
        for key, offered in ((" ".join(own), weight), *((other, ALIAS_WEIGHT) for other in others)):
            if key and (key not in best or offered > best[key][1]):
                best[key] = entity, offered
    for key, entity, weight in loose:
        best.setdefault(key, (entity, weight))
    return best


@dataclass(frozen=True, slots=True)
class Keywords:
    """A question's entities (ids), and the texts to compare with entities (`low`) and with communities (`high`)."""

    entities: Sequence[str]
    low: str
    high: str


QuestionEntities = Callable[[Sequence[Question], Counters, Linker], Sequence[Sequence[str]]]
"""ADR-041, stage 1: per question the ids of the entities that it means, each once, most important first."""

Synonyms = Callable[[Counters, Linker, Sequence[tuple[int, str]], int], Sequence[Sequence[str]]]
"""ADR-041, stage 3: for each (index of the question in the batch, entity id) at most so many names, best first."""

QuestionKeywords = Callable[[Sequence[Question], Counters, Linker], Sequence[Keywords]]
"""The low- and high-level keywords of each question, as LightRAG has them from a language model."""

CommunitySummaries = Callable[[Counters, Sequence[str]], Sequence[str]]
"""A summary for each community, of which the text has entity names and relations."""

TreeRelevance = Callable[[Sequence[Question], Counters, Sequence[tuple[int, str]]], Sequence[float]]
"""How relevant each (index of the question in the batch, a tree's chunks as one text) is; higher is better."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """The services of an index; None where there is none. `model` names the model behind them, for trial ids."""

    model: str = ""
    question_entities: QuestionEntities | None = None
    synonyms: Synonyms | None = None
    keywords: QuestionKeywords | None = None
    community_summaries: CommunitySummaries | None = None
    tree_relevance: TreeRelevance | None = None

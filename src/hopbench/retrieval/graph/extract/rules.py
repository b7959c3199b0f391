"""The graph without a language model: entities, MENTIONED_IN and RELATED_TO read by rules from the passages.

RELATED_TO joins a passage's subject (its title entity) with what the passage names, and names that share a sentence.
Its strength is `rarity · (1 − Π(1 − c))`, at most 1, over the statements found, where c is .9 when the sentence names
the subject itself, .8 for the subject's other sentences and .5 for two names in one sentence; rarity is
`ln((N + 1)/df)/ln(N + 1)` of the commoner of both (N chunks, df of them naming it), so that a hub such as a
nationality relates weakly to all it touches. At strength ≥ .5 only relations of names with df ≤ (N + 1)^.44 or so pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

import pandas as pd

from hopbench.retrieval.graph.extract.aliases import AliasTable, alias_table
from hopbench.retrieval.graph.extract.names import (
    Named,
    Phrases,
    ReadChunk,
    keep_phrases,
    mention_counts,
    named_entities,
    read_chunk,
    titled_entities,
)
from hopbench.retrieval.graph.schema import (
    EDGE_COLUMNS,
    ENTITY,
    MENTIONED_IN,
    NODE_COLUMNS,
    RELATED_TO,
    RULE_RELATIONS,
    entity_id,
)
from hopbench.retrieval.support.arithmetic import ln
from hopbench.retrieval.text import Key, Tagger
from hopbench.retrieval.types import Chunk

SUBJECT_NAMED, SUBJECT_IMPLIED, CO_MENTION = 0.9, 0.8, 0.5
STATED, IMPLIED, NAMED_TOGETHER = "sin"
TYPES: Mapping[str, str] = dict(zip((STATED, IMPLIED, NAMED_TOGETHER), RULE_RELATIONS, strict=True))
CERTAINTY: Mapping[str, float] = {STATED: SUBJECT_NAMED, IMPLIED: SUBJECT_IMPLIED, NAMED_TOGETHER: CO_MENTION}
UNSTATED: list[str] = []  # one for all edges: names that stand together have no direction
BLOCK = 20_000  # chunks read at a time: 60 MB as words
ROWS = 100_000  # of a part

Relations = defaultdict[tuple[Key, Key], "Relation"]
Part = tuple[str, pd.DataFrame]
"""A node label or edge type, and some rows of its table."""

Name = TypeVar("Name", Key, str)
MAX_APART = 5  # names further apart in one sentence (lists of dozens) are not taken as related


@dataclass(slots=True)
class Relation:
    """The statements about two names: the letter of each one's kind (`CERTAINTY`), the first sentence, all stems.

    Most pairs have one statement, and there are millions of pairs: no sets before the end.
    """

    kinds: str = ""
    description: str = ""
    stems: tuple[Sequence[str], ...] = ()

    def state(self, kind: str, sentence: str, stems: Sequence[str]) -> None:
        """Add a statement of a kind, with the sentence that makes it."""
        self.kinds += kind
        self.stems += (stems,)
        self.description = self.description or sentence[:300]

    def row(self, source: str, target: str, rarity: float, tagger: Tagger) -> tuple[Any, ...] | None:
        """The row of RELATED_TO for two ids, the smaller first; None where the strength rounds to nothing."""
        doubt = 1.0
        for kind in self.kinds:
            doubt *= 1.0 - CERTAINTY[kind]
        strength = round((1.0 - doubt) * rarity, 6)
        if strength <= 0:
            return None
        types = sorted({TYPES[kind] for kind in self.kinds})
        return source, target, strength, types, self.description, tagger.top(sorted(set().union(*self.stems))), UNSTATED


class MoreNames(Protocol):
    """Finds names that the rules miss."""

    def __call__(self, read: Sequence[ReadChunk], table: AliasTable) -> Mapping[Key, str]:
        """Append the names to each chunk's `phrases`; returns the types of names."""
        ...


def rule_parts(chunks: Sequence[Chunk], tagger: Tagger, more_names: MoreNames | None = None) -> Iterator[Part]:
    """Entities, MENTIONED_IN and RELATED_TO of a corpus in parts, with the columns of `schema`.

    `tagger` is fitted on the same chunks; tags of an edge come from the sentences that mention or state it. A corpus of
    more than `BLOCK` chunks is read twice, block by block, since as words it takes several times its own memory: for
    its names, and for its edges. With `more_names` it is read once, whole.
    """
    corpus = _Corpus(chunks, alias_table(chunks, tagger.language), max(len(chunks), 1) if more_names else BLOCK)
    types = dict(more_names(read, corpus.table)) if more_names and (read := next(corpus.blocks(), None)) else {}
    phrases = Phrases()
    titled = titled_entities(_counted(corpus.blocks(), phrases), corpus.table)
    names = phrases.names()
    yield from entity_parts(named_entities(titled, names, types))
    del titled, phrases
    relations: Relations = defaultdict(Relation)
    frequency: Counter[Key] = Counter()
    for read in corpus.blocks():
        keep_phrases(read, names)
        mentions = mentions_of(read, tagger, relations)
        frequency.update(key for chunk in read for key in mention_counts(chunk))
        if len(mentions):
            yield MENTIONED_IN, mentions
    del corpus, names
    yield from _related_parts(relations, frequency, len(chunks), tagger)


class _Corpus:
    """Chunks read block by block; those of a single block are read once."""

    def __init__(self, chunks: Sequence[Chunk], table: AliasTable, size: int) -> None:
        self.table = table
        self._chunks, self._size = chunks, size
        self._read: list[ReadChunk] | None = None

    def blocks(self) -> Iterator[list[ReadChunk]]:
        """The chunks as they were read, from the first block to the last."""
        if self._read is not None:
            yield self._read
            return
        for begin in range(0, len(self._chunks), self._size):
            read = [read_chunk(chunk, self.table) for chunk in self._chunks[begin : begin + self._size]]
            if len(read) == len(self._chunks):
                self._read = read
            yield read


def _counted(blocks: Iterable[list[ReadChunk]], phrases: Phrases) -> Iterator[ReadChunk]:
    for read in blocks:
        phrases.add(read)
        yield from read


def rule_tables(
    chunks: Sequence[Chunk], tagger: Tagger, more_names: MoreNames | None = None
) -> Mapping[str, pd.DataFrame]:
    """The parts of `rule_parts` put together: whole tables by name."""
    empty = {ENTITY: NODE_COLUMNS[ENTITY], **{kind: EDGE_COLUMNS[kind] for kind in (MENTIONED_IN, RELATED_TO)}}
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in empty}
    for name, part in rule_parts(chunks, tagger, more_names):
        parts[name].append(part)
    return {
        name: pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(empty[name]))
        for name, found in parts.items()
    }


def entity_parts(entities: Iterator[Named]) -> Iterator[Part]:
    """ENTITY in parts."""
    while part := list(islice(entities, ROWS)):
        rows = [(entity_id(one.key), one.name, one.type, one.description, list(one.aliases)) for one in part]
        yield ENTITY, pd.DataFrame(rows, columns=list(NODE_COLUMNS[ENTITY]))


def mentions_of(read: Sequence[ReadChunk], tagger: Tagger, relations: Relations) -> pd.DataFrame:
    """The table of mentions; adds the statements about each pair of names to its relation."""
    mentions: list[tuple[str, str, int, float, list[str]]] = []
    for chunk in read:
        stems = [tagger.stem_words(word.folded for word in words) for words in chunk.words]
        mentions.extend(_mention_rows(chunk, mention_counts(chunk), stems, tagger))
        for first, second, kind, number in _statements(chunk):
            pair = (first, second) if first < second else (second, first)
            relations[pair].state(kind, chunk.sentences[number], stems[number])
    return pd.DataFrame(mentions, columns=list(EDGE_COLUMNS[MENTIONED_IN]))


def _mention_rows(
    read: ReadChunk, counts: Mapping[Key, int], stems: Sequence[list[str]], tagger: Tagger
) -> Iterator[tuple[str, str, int, float, list[str]]]:
    weights: dict[Key, float] = {}
    seen: defaultdict[Key, set[str]] = defaultdict(set)
    for mention in read.mentions:
        weights[mention.key] = max(weights.get(mention.key, 0.0), mention.weight)
        seen[mention.key].update(stems[mention.span.sentence])
    for key, weight in weights.items():
        yield entity_id(key), read.chunk.id, counts[key], round(weight, 6), tagger.top(sorted(seen[key]))


def _statements(read: ReadChunk) -> Iterator[tuple[Key, Key, str, int]]:
    """Pairs that a passage states: (entity, entity, kind, sentence); each pair once a sentence."""
    by_sentence: defaultdict[int, list[Key]] = defaultdict(list)
    for mention in read.mentions:
        if mention.span.sentence and mention.key not in by_sentence[mention.span.sentence]:
            by_sentence[mention.span.sentence].append(mention.key)
    for number, names in by_sentence.items():
        named = read.subject in names
        others = [name for name in names if name != read.subject]
        if read.subject:
            for other in others:
                yield read.subject, other, STATED if named else IMPLIED, number
        for index, first in enumerate(others):
            for second in others[index + 1 : index + 1 + MAX_APART]:
                yield first, second, NAMED_TOGETHER, number


def _related_parts(
    relations: dict[tuple[Key, Key], Relation], frequency: Mapping[Key, int], chunks: int, tagger: Tagger
) -> Iterator[Part]:
    rarity = rarities(frequency, chunks)
    written = Relation()

    def rows() -> Iterator[tuple[Any, ...] | None]:
        for (first, second), relation in relations.items():
            ends = sorted((entity_id(first), entity_id(second)))
            yield relation.row(ends[0], ends[1], min(rarity[first], rarity[second]), tagger)
            relations[first, second] = written  # its sentences are needed no more

    yield from related_parts(rows())


def rarities(frequency: Mapping[Name, int], chunks: int) -> dict[Name, float]:
    """ln((N + 1)/df)/ln(N + 1) of each name that df of N chunks mention."""
    scale = ln(chunks + 1.0) or 1.0
    return {name: ln((chunks + 1) / count) / scale for name, count in frequency.items()}


def related_parts(rows: Iterable[tuple[Any, ...] | None]) -> Iterator[Part]:
    """RELATED_TO in parts, from the rows of relations; None is none."""
    present = (row for row in rows if row is not None)
    while part := list(islice(present, ROWS)):
        yield RELATED_TO, pd.DataFrame(part, columns=list(EDGE_COLUMNS[RELATED_TO]))

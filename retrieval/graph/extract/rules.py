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
from typing import Protocol

import pandas as pd

from hopbench.retrieval.graph.extract.aliases import AliasTable, Key, alias_table
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
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

SUBJECT_NAMED, SUBJECT_IMPLIED, CO_MENTION = 0.9, 0.8, 0.5
STATED, IMPLIED, NAMED_TOGETHER = RULE_RELATIONS
BLOCK = 20_000  # chunks read at a time: 60 MB as words
ROWS = 100_000  # of a part

Part = tuple[str, pd.DataFrame]
"""A node label or edge type, and some rows of its table."""

MAX_APART = 5  # names further apart in one sentence (lists of dozens) are not taken as related


@dataclass(slots=True)
class _Relation:
    """The statements about two names. Most pairs have one, and there are millions: no sets before the end."""

    doubt: float = 1.0
    types: tuple[str, ...] = ()
    description: str = ""
    stems: tuple[Sequence[str], ...] = ()

    def state(self, certainty: float, kind: str, sentence: str, stems: Sequence[str]) -> None:
        self.doubt *= 1.0 - certainty
        if kind not in self.types:
            self.types += (kind,)
        self.stems += (stems,)
        self.description = self.description or sentence[:300]


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
    corpus = _Corpus(chunks, max(len(chunks), 1) if more_names else BLOCK)
    types = dict(more_names(read, corpus.table)) if more_names and (read := next(corpus.blocks(), None)) else {}
    phrases = Phrases()
    titled = titled_entities(_counted(corpus.blocks(), phrases), corpus.table)
    names = phrases.names()
    yield from _entity_parts(named_entities(titled, names, types))
    del titled, phrases
    relations: defaultdict[tuple[Key, Key], _Relation] = defaultdict(_Relation)
    frequency: Counter[Key] = Counter()
    for read in corpus.blocks():
        keep_phrases(read, names)
        mentions = _mentions(read, tagger, relations, frequency)
        if len(mentions):
            yield MENTIONED_IN, mentions
    del corpus, names
    yield from _related_parts(relations, frequency, len(chunks), tagger)


class _Corpus:
    """Chunks read block by block; those of a single block are read once."""

    def __init__(self, chunks: Sequence[Chunk], size: int) -> None:
        self.table = alias_table(chunks)
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


def _entity_parts(entities: Iterator[Named]) -> Iterator[Part]:
    while part := list(islice(entities, ROWS)):
        rows = [(entity_id(one.key), one.name, one.type, one.description, list(one.aliases)) for one in part]
        yield ENTITY, pd.DataFrame(rows, columns=list(NODE_COLUMNS[ENTITY]))


def _mentions(
    read: Sequence[ReadChunk],
    tagger: Tagger,
    relations: defaultdict[tuple[Key, Key], _Relation],
    frequency: Counter[Key],
) -> pd.DataFrame:
    """The table of mentions; adds to the relation of each pair of names, and to the chunks that mention each name."""
    mentions: list[tuple[str, str, int, float, list[str]]] = []
    for chunk in read:
        stems = [tagger.stem_words(word.folded for word in words) for words in chunk.words]
        counts = mention_counts(chunk)
        frequency.update(counts.keys())
        mentions.extend(_mention_rows(chunk, counts, stems, tagger))
        for first, second, certainty, kind, number in _statements(chunk):
            pair = (first, second) if first < second else (second, first)
            relations[pair].state(certainty, kind, chunk.sentences[number], stems[number])
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


def _statements(read: ReadChunk) -> Iterator[tuple[Key, Key, float, str, int]]:
    """Pairs that a passage states: (entity, entity, certainty, kind, sentence); each pair once a sentence."""
    by_sentence: defaultdict[int, list[Key]] = defaultdict(list)
    for mention in read.mentions:
        if mention.span.sentence and mention.key not in by_sentence[mention.span.sentence]:
            by_sentence[mention.span.sentence].append(mention.key)
    for number, names in by_sentence.items():
        named = read.subject in names
        others = [name for name in names if name != read.subject]
        if read.subject:
            certainty, kind = (SUBJECT_NAMED, STATED) if named else (SUBJECT_IMPLIED, IMPLIED)
            for other in others:
                yield read.subject, other, certainty, kind, number
        for index, first in enumerate(others):
            for second in others[index + 1 : index + 1 + MAX_APART]:
                yield first, second, CO_MENTION, NAMED_TOGETHER, number


def _related_parts(
    relations: dict[tuple[Key, Key], _Relation], frequency: Mapping[Key, int], chunks: int, tagger: Tagger
) -> Iterator[Part]:
    scale = ln(chunks + 1.0) or 1.0
    rarity = {key: ln((chunks + 1) / count) / scale for key, count in frequency.items()}
    written = _Relation()
    rows = []
    unstated: list[str] = []  # one for all edges: names that stand together have no direction
    for (first, second), relation in relations.items():
        strength = round((1.0 - relation.doubt) * min(rarity[first], rarity[second]), 6)
        if strength > 0:
            ends = sorted((entity_id(first), entity_id(second)))
            tags = tagger.top(sorted(set().union(*relation.stems)))
            rows.append((*ends, strength, sorted(relation.types), relation.description, tags, unstated))
        relations[first, second] = written  # its sentences are needed no more
        if len(rows) == ROWS:
            yield RELATED_TO, pd.DataFrame(rows, columns=list(EDGE_COLUMNS[RELATED_TO]))
            rows.clear()
    if rows:
        yield RELATED_TO, pd.DataFrame(rows, columns=list(EDGE_COLUMNS[RELATED_TO]))

"""The graph without a language model: entities, MENTIONED_IN and RELATED_TO extracted by rules from the passages.

RELATED_TO joins a passage's subject (its title entity) with the names in the passage, and names in the same sentence.
Its strength is `rarity · (1 − Π(1 − c))`, at most 1, over the statements found, where c is 0.9 if the sentence names
the subject itself, 0.8 for the subject's other sentences and 0.5 for two names in one sentence; rarity is
`ln((N + 1)/df)/ln(N + 1)` of the more frequent of both names (N chunks, df of them naming it), so that a hub such as a
nationality relates weakly to its neighbours. A strength of 0.5 or more needs a df of about (N + 1)^0.44 or less.

A large corpus is read in blocks (the functions from `read_names` on): once for its names and, when all names are known,
again for its mentions and statements. The statements about a pair of names go to one of several buckets, by a digest of
the first name, so that relations are assembled one bucket at a time. The tables equal those of `rule_parts` to the last
digit: kinds of statements keep their order, in which their doubts are multiplied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar
from zlib import crc32

import pandas as pd

from hopbench.retrieval.graph.extract.names import (
    AliasTable,
    Named,
    Phrases,
    ReadChunk,
    alias_table,
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
NO_STATEMENTS: list[str] = []  # shared by all edges: co-occurrence has no direction
CHUNKS_PER_BLOCK = 20_000  # 60 MB as words
ROWS_PER_PART = 100_000

Relations = defaultdict[tuple[Key, Key], "Relation"]
Part = tuple[str, pd.DataFrame]
"""A node label or edge type, and some rows of its table."""

Name = TypeVar("Name", Key, str)
MAX_APART = 5  # names further apart in a sentence (as in long lists) are not related


@dataclass(slots=True)
class Relation:
    """The statements about two names: a letter per statement (`CERTAINTY`), the first sentence, all stems.

    There are millions of pairs, most with one statement, so sets are built only at the end.
    """

    kinds: str = ""
    description: str = ""
    stems: tuple[Sequence[str], ...] = ()

    def state(self, kind: str, sentence: str, stems: Sequence[str]) -> None:
        """Add a statement of a kind, with its sentence."""
        self.kinds += kind
        self.stems += (stems,)
        self.description = self.description or sentence[:300]

    def row(self, source: str, target: str, rarity: float, tagger: Tagger) -> tuple[Any, ...] | None:
        """The row of RELATED_TO for two ids, the smaller first; None if the strength rounds to 0."""
        doubt = 1.0
        for kind in self.kinds:
            doubt *= 1.0 - CERTAINTY[kind]
        strength = round((1.0 - doubt) * rarity, 6)
        if strength <= 0:
            return None
        types = sorted({TYPES[kind] for kind in self.kinds})
        return (
            source,
            target,
            strength,
            types,
            self.description,
            tagger.top(sorted(set().union(*self.stems))),
            NO_STATEMENTS,
        )


class MoreNames(Protocol):
    """Finds names that the rules miss."""

    def __call__(self, read: Sequence[ReadChunk], table: AliasTable) -> Mapping[Key, str]:
        """Append names to each chunk's `phrases`; returns the types of the names."""
        ...


def rule_parts(chunks: Sequence[Chunk], tagger: Tagger, more_names: MoreNames | None = None) -> Iterator[Part]:
    """Extract entities, MENTIONED_IN and RELATED_TO of a corpus in parts, with the columns of `schema`.

    `tagger` is fitted on the same chunks; tags of an edge come from the sentences that mention or state it. A corpus of
    more than `CHUNKS_PER_BLOCK` chunks is read twice, block by block (for its names, then for its edges), since its
    words take several times its own memory. With `more_names` it is read once, as a whole.
    """
    corpus = _Corpus(
        chunks, alias_table(chunks, tagger.language), max(len(chunks), 1) if more_names else CHUNKS_PER_BLOCK
    )
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
    """Reads chunks block by block; a single block is read only once."""

    def __init__(self, chunks: Sequence[Chunk], table: AliasTable, size: int) -> None:
        self.table = table
        self._chunks, self._size = chunks, size
        self._read: list[ReadChunk] | None = None

    def blocks(self) -> Iterator[list[ReadChunk]]:
        """The blocks of chunks in order."""
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
    """Concatenate the parts of `rule_parts` to whole tables, by name."""
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
    while part := list(islice(entities, ROWS_PER_PART)):
        rows = [(entity_id(one.key), one.name, one.type, one.description, list(one.aliases)) for one in part]
        yield ENTITY, pd.DataFrame(rows, columns=list(NODE_COLUMNS[ENTITY]))


def mentions_of(read: Sequence[ReadChunk], tagger: Tagger, relations: Relations) -> pd.DataFrame:
    """Build the table of mentions, and add the statements about each pair of names to `relations`."""
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
    """The pairs stated in a passage: (entity, entity, kind, sentence), each pair once per sentence."""
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
            relations[first, second] = written  # frees its sentences

    yield from related_parts(rows())


def rarities(frequency: Mapping[Name, int], chunks: int) -> dict[Name, float]:
    """ln((N + 1)/df)/ln(N + 1) of each name that df of N chunks mention."""
    scale = ln(chunks + 1.0) or 1.0
    return {name: ln((chunks + 1) / count) / scale for name, count in frequency.items()}


def related_parts(rows: Iterable[tuple[Any, ...] | None]) -> Iterator[Part]:
    """RELATED_TO in parts, from the rows of relations; None is skipped."""
    present = (row for row in rows if row is not None)
    while part := list(islice(present, ROWS_PER_PART)):
        yield RELATED_TO, pd.DataFrame(part, columns=list(EDGE_COLUMNS[RELATED_TO]))


TITLED, PHRASES = "titled", "phrases"
STATEMENTS = "statements"
_TITLED = ("key", "name", "type", "description", "aliases")
_PHRASES = ("key", "passage", "spelling", "returning")
_STATEMENTS = ("source", "target", "kinds", "description", "stems")


def read_names(chunks: Sequence[Chunk], table: AliasTable) -> Iterator[Part]:
    """Read the titled entities of a block, and the first passage and spelling of each of its phrases."""
    read, phrases = _read(chunks, table), Phrases()
    titled = titled_entities(read, table).values()
    rows = [(_text(one.key), one.name, one.type, one.description, list(one.aliases)) for one in titled]
    yield TITLED, pd.DataFrame(rows, columns=list(_TITLED))
    phrases.add(read)
    firsts = [(_text(key), *values) for key, *values in phrases.firsts()]
    yield PHRASES, pd.DataFrame(firsts, columns=list(_PHRASES))


def joined_names(blocks: Iterable[tuple[pd.DataFrame, pd.DataFrame]]) -> tuple[dict[Key, Named], dict[Key, str]]:
    """Merge blocks, each (titled, phrases): the titled entities, and the phrases that are names."""
    titled: dict[Key, Named] = {}
    phrases = Phrases()
    for own, firsts in blocks:
        for key, name, kind, description, aliases in own.itertuples(index=False, name=None):
            titled.setdefault(_key(key), Named(_key(key), name, kind, description, tuple(aliases)))
        phrases.join((_key(key), *values) for key, *values in firsts.itertuples(index=False, name=None))
    return titled, phrases.names()


def entities(titled: Mapping[Key, Named], names: Mapping[Key, str]) -> Iterator[Part]:
    """ENTITY in parts."""
    return entity_parts(named_entities(titled, names, {}))


def read_statements(
    chunks: Sequence[Chunk], table: AliasTable, names: Mapping[Key, str], tagger: Tagger, buckets: int
) -> Iterator[Part]:
    """Read MENTIONED_IN of a block, and the statements about its pairs of names, in buckets."""
    read = _read(chunks, table)
    keep_phrases(read, names)
    relations: Relations = defaultdict(Relation)
    yield MENTIONED_IN, mentions_of(read, tagger, relations)
    rows: list[list[tuple[str, ...]]] = [[] for _ in range(buckets)]
    for (first, second), relation in relations.items():
        ends = sorted((entity_id(first), entity_id(second)))
        stems = " ".join(sorted(set().union(*relation.stems)))
        rows[crc32(ends[0].encode()) % buckets].append((*ends, relation.kinds, relation.description, stems))
    for bucket, part in enumerate(rows):
        yield statements(bucket), pd.DataFrame(part, columns=list(_STATEMENTS))


def statements(bucket: int) -> str:
    """The name of a bucket's table."""
    return f"{STATEMENTS}{bucket:04}"


def frequencies(mentions: Iterable[pd.DataFrame]) -> Mapping[str, int]:
    """Count the chunks that mention each entity."""
    counts: Counter[str] = Counter()
    for part in mentions:
        counts.update(part["source"].tolist())
    return counts


def joined_statements(
    blocks: Iterable[pd.DataFrame], frequency: Mapping[str, int], chunks: int, tagger: Tagger
) -> Iterator[Part]:
    """Build RELATED_TO of a bucket's pairs, from its tables in the order of the blocks."""
    relations: defaultdict[tuple[str, str], Relation] = defaultdict(Relation)
    for block in blocks:
        for source, target, kinds, description, stems in block.itertuples(index=False, name=None):
            relation = relations[source, target]
            relation.kinds += kinds
            relation.description = relation.description or description
            relation.stems += (stems.split(),)
    here = {end: frequency[end] for pair in relations for end in pair}
    rarity = rarities(here, chunks)
    return related_parts(
        relation.row(source, target, min(rarity[source], rarity[target]), tagger)
        for (source, target), relation in relations.items()
    )


def _read(chunks: Sequence[Chunk], table: AliasTable) -> list[ReadChunk]:
    return [read_chunk(chunk, table) for chunk in chunks]


def _text(key: Key) -> str:
    """A name key as text; folded words contain no spaces."""
    return " ".join(key)


def _key(text: str) -> Key:
    return tuple(text.split(" "))

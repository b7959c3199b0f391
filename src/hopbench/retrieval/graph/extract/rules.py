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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from zlib import crc32

import pandas as pd

from hopbench.retrieval.graph.extract.names import (
    AliasTable,
    EntityRow,
    ReadChunk,
    alias_table,
    first_phrases,
    keep_phrases,
    phrases_of,
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

STATED, IMPLIED, NAMED_TOGETHER = "sin"
TYPES: Mapping[str, str] = dict(zip((STATED, IMPLIED, NAMED_TOGETHER), RULE_RELATIONS, strict=True))
CERTAINTY: Mapping[str, float] = {STATED: 0.9, IMPLIED: 0.8, NAMED_TOGETHER: 0.5}
NO_STATEMENTS: list[str] = []  # shared by all edges: co-occurrence has no direction
CHUNKS_PER_BLOCK = 20_000  # 60 MB as words
ROWS_PER_PART = 100_000
MAX_APART = 5  # names further apart in a sentence (as in long lists) are not related

Part = tuple[str, pd.DataFrame]
"""A node label or edge type, and some rows of its table."""

MoreNames = Callable[[Sequence[ReadChunk], AliasTable], Mapping[Key, str]]
"""Appends names that the rules miss to each chunk's `phrases`; returns the types of the names."""


@dataclass(slots=True)
class Relation:
    """The statements about two names: a letter per statement (`CERTAINTY`), the first sentence, all stems.

    There are millions of pairs, most with one statement, so sets are built only at the end.
    """

    kinds: str = ""
    description: str = ""
    stems: tuple[Sequence[str], ...] = ()

    def state(self, kinds: str, sentence: str, stems: Sequence[str]) -> None:
        """Add statements of some kinds, with the first one's sentence."""
        self.kinds += kinds
        self.stems += (stems,)
        self.description = self.description or sentence[:300]


Relations = defaultdict[tuple[str, str], Relation]
"""The relations by the ids of their ends, the smaller first."""


def rule_parts(chunks: Sequence[Chunk], tagger: Tagger, more_names: MoreNames | None = None) -> Iterator[Part]:
    """Extract entities, MENTIONED_IN and RELATED_TO of a corpus in parts, with the columns of `schema`.

    `tagger` is fitted on the same chunks; tags of an edge come from the sentences that mention or state it.
    """
    table = alias_table(chunks, tagger.language)
    read = [read_chunk(chunk, table) for chunk in chunks]
    types = more_names(read, table) if more_names else {}
    names = {key: spelling for key, _, spelling, recurs in first_phrases(phrases_of(read)) if recurs}
    yield from entity_parts(titled_entities(read, table), names, types)
    relations: Relations = defaultdict(Relation)
    keep_phrases(read, names)
    mentions = _mentions(read, tagger, relations)
    del read, names
    if len(mentions):
        yield MENTIONED_IN, mentions
    yield from related_parts(relations, Counter(mentions["source"].tolist()), len(chunks), tagger)


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


def entity_parts(
    titled: Mapping[Key, EntityRow], names: Mapping[Key, str], types: Mapping[Key, str] | None = None
) -> Iterator[Part]:
    """ENTITY in parts: titles first, then the phrases that are names, of the `types` known; each key once."""
    known = types or {}
    only_phrases = (key for key in names if key not in titled)
    phrases: Iterator[EntityRow] = (
        (entity_id(key), names[key], known.get(key, "phrase"), "", []) for key in only_phrases
    )
    rows = chain(titled.values(), phrases)
    while part := list(islice(rows, ROWS_PER_PART)):
        yield ENTITY, pd.DataFrame(part, columns=list(NODE_COLUMNS[ENTITY]))


def _mentions(read: Sequence[ReadChunk], tagger: Tagger, relations: Relations) -> pd.DataFrame:
    """Build the table of mentions, and add the statements about each pair of names to `relations`."""
    rows: list[tuple[str, str, int, float, list[str]]] = []
    for chunk in read:
        stems = [tagger.stem_words(word.folded for word in words) for words in chunk.words]
        weights: dict[Key, float] = {}
        seen: defaultdict[Key, set[str]] = defaultdict(set)
        for mention in chunk.mentions:
            weights[mention.key] = max(weights.get(mention.key, 0.0), mention.weight)
            seen[mention.key].update(stems[mention.sentence])
        counts = Counter(mention.key for mention in chunk.mentions)
        ids = {key: entity_id(key) for key in weights}
        for key, weight in weights.items():
            rows.append((ids[key], chunk.chunk.id, counts[key], round(weight, 6), tagger.top(sorted(seen[key]))))
        for first, second, kind, number in _statements(chunk):
            source, target = sorted((ids[first], ids[second]))
            relations[source, target].state(kind, chunk.sentences[number], stems[number])
    return pd.DataFrame(rows, columns=list(EDGE_COLUMNS[MENTIONED_IN]))


def _statements(read: ReadChunk) -> Iterator[tuple[Key, Key, str, int]]:
    """The pairs stated in a passage: (entity, entity, kind, sentence), each pair once per sentence."""
    by_sentence: defaultdict[int, dict[Key, None]] = defaultdict(dict)
    for mention in read.mentions:
        if mention.sentence:
            by_sentence[mention.sentence][mention.key] = None
    for number, names in by_sentence.items():
        others = [name for name in names if name != read.subject]
        if read.subject:
            for other in others:
                yield read.subject, other, STATED if read.subject in names else IMPLIED, number
        for index, first in enumerate(others):
            for second in others[index + 1 : index + 1 + MAX_APART]:
                yield first, second, NAMED_TOGETHER, number


def related_parts(relations: Relations, frequency: Mapping[str, int], chunks: int, tagger: Tagger) -> Iterator[Part]:
    """RELATED_TO in parts, of names that so many of the chunks mention; a strength that rounds to 0 is no edge."""
    scale = ln(chunks + 1.0) or 1.0
    rarity = {name: ln((chunks + 1) / frequency[name]) / scale for name in {end for pair in relations for end in pair}}

    def rows() -> Iterator[tuple[Any, ...]]:
        for (source, target), relation in relations.items():
            doubt = 1.0
            for kind in relation.kinds:
                doubt *= 1.0 - CERTAINTY[kind]
            strength = round((1.0 - doubt) * min(rarity[source], rarity[target]), 6)
            if strength > 0:
                types = sorted({TYPES[kind] for kind in relation.kinds})
                tags = tagger.top(sorted(set().union(*relation.stems)))
                yield source, target, strength, types, relation.description, tags, NO_STATEMENTS

    every = rows()
    while part := list(islice(every, ROWS_PER_PART)):
        yield RELATED_TO, pd.DataFrame(part, columns=list(EDGE_COLUMNS[RELATED_TO]))


TITLED, PHRASES, STATEMENTS = "titled", "phrases", "statements"


def read_names(chunks: Sequence[Chunk], table: AliasTable) -> Iterator[Part]:
    """Read the titled entities of a block, and the first passage and spelling of each of its phrases."""
    read = [read_chunk(chunk, table) for chunk in chunks]
    yield TITLED, pd.DataFrame(list(titled_entities(read, table).values()), columns=list(NODE_COLUMNS[ENTITY]))
    phrases = [(" ".join(key), *first) for key, *first in first_phrases(phrases_of(read))]
    yield PHRASES, pd.DataFrame(phrases, columns=["key", "passage", "spelling", "recurs"])


def joined_names(
    titled: Iterable[pd.DataFrame], phrases: Iterable[pd.DataFrame]
) -> tuple[dict[Key, EntityRow], dict[Key, str]]:
    """Merge the tables of blocks: the titled entities, and the phrases that are names."""
    entities: dict[Key, EntityRow] = {}
    for row in chain.from_iterable(part.itertuples(index=False, name=None) for part in titled):
        entities.setdefault(tuple(row[0].removeprefix("e:").split(" ")), row)
    rows = chain.from_iterable(part.itertuples(index=False, name=None) for part in phrases)
    firsts = first_phrases((tuple(key.split(" ")), *first) for key, *first in rows)
    return entities, {key: spelling for key, _, spelling, recurs in firsts if recurs}


def read_statements(
    chunks: Sequence[Chunk], table: AliasTable, names: Mapping[Key, str], tagger: Tagger, buckets: int
) -> Iterator[Part]:
    """Read MENTIONED_IN of a block, and the statements about its pairs of names, in buckets."""
    read = [read_chunk(chunk, table) for chunk in chunks]
    keep_phrases(read, names)
    relations: Relations = defaultdict(Relation)
    yield MENTIONED_IN, _mentions(read, tagger, relations)
    rows: list[list[tuple[str, ...]]] = [[] for _ in range(buckets)]
    for ends, relation in relations.items():
        stems = " ".join(sorted(set().union(*relation.stems)))
        rows[crc32(ends[0].encode()) % buckets].append((*ends, relation.kinds, relation.description, stems))
    for bucket, part in enumerate(rows):
        yield statements(bucket), pd.DataFrame(part, columns=["source", "target", "kinds", "description", "stems"])


def statements(bucket: int) -> str:
    """The name of a bucket's table."""
    return f"{STATEMENTS}{bucket:04}"


def joined_statements(
    blocks: Iterable[pd.DataFrame], frequency: Mapping[str, int], chunks: int, tagger: Tagger
) -> Iterator[Part]:
    """Build RELATED_TO of a bucket's pairs, from its tables in the order of the blocks."""
    relations: Relations = defaultdict(Relation)
    for source, target, kinds, sentence, stems in chain.from_iterable(
        b.itertuples(index=False, name=None) for b in blocks
    ):
        relations[source, target].state(kinds, sentence, stems.split())
    return related_parts(relations, frequency, chunks, tagger)

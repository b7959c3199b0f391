"""The rules of `extract.rules` on a large corpus: what each block of chunks gives, and how blocks are put together.

A block is read for its names, and again, when the names of all are known, for its mentions and statements. The
statements about a pair of names lie in one of several buckets, by a digest of its first name, so that relations are put
together a bucket at a time. The tables are those of `rule_parts` to the last digit: kinds of statements stay in their
order, in which their doubts are multiplied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import pandas as pd

from hopbench.retrieval.graph.extract.aliases import AliasTable
from hopbench.retrieval.graph.extract.names import (
    Named,
    Phrases,
    ReadChunk,
    keep_phrases,
    named_entities,
    read_chunk,
    titled_entities,
)
from hopbench.retrieval.graph.extract.rules import (
    Part,
    Relation,
    Relations,
    entity_parts,
    mentions_of,
    rarities,
    related_parts,
)
from hopbench.retrieval.graph.schema import MENTIONED_IN, entity_id
from hopbench.retrieval.text import Key, Tagger
from hopbench.retrieval.types import Chunk

TITLED, PHRASES = "titled", "phrases"
STATEMENTS = "statements"
_TITLED = ("key", "name", "type", "description", "aliases")
_PHRASES = ("key", "passage", "spelling", "returning")
_STATEMENTS = ("source", "target", "kinds", "description", "stems")


def read_names(chunks: Sequence[Chunk], table: AliasTable) -> Iterator[Part]:
    """The titled entities of a block, and its phrases: the first passage and spelling of each."""
    read, phrases = _read(chunks, table), Phrases()
    titled = titled_entities(read, table).values()
    rows = [(_text(one.key), one.name, one.type, one.description, list(one.aliases)) for one in titled]
    yield TITLED, pd.DataFrame(rows, columns=list(_TITLED))
    phrases.add(read)
    firsts = [(_text(key), *values) for key, *values in phrases.firsts()]
    yield PHRASES, pd.DataFrame(firsts, columns=list(_PHRASES))


def joined_names(blocks: Iterable[tuple[pd.DataFrame, pd.DataFrame]]) -> tuple[dict[Key, Named], dict[Key, str]]:
    """The titled entities and the names among the phrases of all blocks, each (titled, phrases), in their order."""
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
    """MENTIONED_IN of a block, and the statements of its pairs of names in buckets."""
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
    """How many chunks mention each entity."""
    counts: Counter[str] = Counter()
    for part in mentions:
        counts.update(part["source"].tolist())
    return counts


def joined_statements(
    blocks: Iterable[pd.DataFrame], frequency: Mapping[str, int], chunks: int, tagger: Tagger
) -> Iterator[Part]:
    """RELATED_TO of a bucket's pairs, from its tables in the order of the blocks."""
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
    """A name key as text: folded words hold no spaces."""
    return " ".join(key)


def _key(text: str) -> Key:
    return tuple(text.split(" "))

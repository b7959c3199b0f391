"""The extract stage of a large corpus by rules: each block, and each bucket of relations, is a stage of its own.

So memory holds a block as words, not the corpus, and one bucket of relations, not all; and a killed build goes on with
the block at which it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import ceil

import pandas as pd

from hopbench.retrieval.graph.construction.staging import Part, Stage, Stages, Staging
from hopbench.retrieval.graph.extract.aliases import alias_table
from hopbench.retrieval.graph.extract.blocks import (
    PHRASES,
    TITLED,
    entities,
    frequencies,
    joined_names,
    joined_statements,
    read_names,
    read_statements,
    statements,
)
from hopbench.retrieval.graph.extract.rules import BLOCK
from hopbench.retrieval.graph.schema import MENTIONED_IN
from hopbench.retrieval.support.collector import collector_paused
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

Each = Callable[[str, Sequence[Callable[[], Iterable[Part]]]], list[Stage]]
BUCKET_CHUNKS = 100_000  # whose relations are put together at a time: 300 MB


def extract_in_blocks(
    chunks: Sequence[Chunk], tagger: Tagger, staging: Staging, size: int = BLOCK, processes: int = 1
) -> Stages:
    """ENTITY, MENTIONED_IN and RELATED_TO by rules, read in blocks of `size` chunks; see `extract.blocks`.

    Several blocks are read at a time where `processes` is more than 1; the tables are the same.
    """
    buckets = ceil(len(chunks) / max(BUCKET_CHUNKS, size))
    made: Each = partial(staging.each, processes=processes)
    with collector_paused():
        named, stated = _read(chunks, tagger, made, size, buckets)
        return Stages([named, *stated, *_related(stated, buckets, len(chunks), tagger, made)])


def _read(chunks: Sequence[Chunk], tagger: Tagger, made: Each, size: int, buckets: int) -> tuple[Stage, list[Stage]]:
    """The stage of entities, and those of each block's mentions and statements."""
    blocks = [chunks[begin : begin + size] for begin in range(0, len(chunks), size)]
    table = alias_table(chunks, tagger.language)
    read = made("names", [partial(read_names, block, table) for block in blocks])
    titled, names = joined_names((_whole(one, TITLED), _whole(one, PHRASES)) for one in read)
    (named,) = made("entities", [partial(entities, titled, names)])
    del titled
    return named, made(
        "statements", [partial(read_statements, block, table, names, tagger, buckets) for block in blocks]
    )


def _related(stated: Sequence[Stage], buckets: int, chunks: int, tagger: Tagger, made: Each) -> list[Stage]:
    """The stages of relations, a bucket each."""
    frequency = frequencies(part for one in stated for part in one.parts(MENTIONED_IN, ["source"]))

    def bucket_parts(bucket: int) -> Iterator[Part]:
        blocks = (part for one in stated for part in one.parts(statements(bucket)))
        return joined_statements(blocks, frequency, chunks, tagger)

    return made("related", [partial(bucket_parts, bucket) for bucket in range(buckets)])


def _whole(stage: Stage, table: str) -> pd.DataFrame:
    (part,) = stage.parts(table)
    return part

"""A graph that is being built: its tables as its stages left them on disk, read part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.graph.construction.staging import Stage, Stages
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_COLUMNS,
    ENTITY,
    NODE_COLUMNS,
    SIMILAR_TO,
    VectorPart,
    document_id,
)
from hopbench.retrieval.types import Chunk

ROWS = 100_000  # chunks in a part


@dataclass(frozen=True)
class BuiltTables:
    """The tables of chunks with vectors (n, d), of the stages that extracted and of those that compared them.

    Names are embedded as their vectors are asked for: a large graph has more of them than chunks.
    """

    chunks: Sequence[Chunk]
    vectors: Vectors
    extracted: Stage | Stages
    similar: Stages
    embedder: Embedder

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `schema.Tables`."""
        return list(NODE_COLUMNS), list(EDGE_COLUMNS)

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """See `schema.Tables`."""
        if name == DOCUMENT:
            return self._documents()
        if name == CHUNK:
            return self._chunk_rows(
                NODE_COLUMNS[CHUNK], lambda chunk: (chunk.id, chunk.passage_id, chunk.index, chunk.content)
            )
        if name == CONTAINS:
            return self._chunk_rows(EDGE_COLUMNS[CONTAINS], lambda chunk: (document_id(chunk.passage_id), chunk.id))
        return self._stage_of(name).parts(name)

    def vector_parts(self) -> Iterator[VectorPart]:
        """See `schema.Tables`."""
        for part in self._blocks():
            yield CHUNK, [chunk.id for chunk in self.chunks[part]], self.vectors[part]
        for table in self.extracted.parts(ENTITY):
            yield ENTITY, table["id"].tolist(), self.embedder.embed(table["name"].tolist())

    def _stage_of(self, name: str) -> Stage | Stages:
        return self.similar if name == SIMILAR_TO else self.extracted

    def _blocks(self) -> Iterator[slice]:
        return (slice(begin, begin + ROWS) for begin in range(0, len(self.chunks), ROWS))

    def _chunk_rows(self, columns: Sequence[str], row: Callable[[Chunk], tuple[object, ...]]) -> Iterator[pd.DataFrame]:
        for part in self._blocks():
            yield pd.DataFrame([row(chunk) for chunk in self.chunks[part]], columns=list(columns))

    def _documents(self) -> Iterator[pd.DataFrame]:
        seen: set[str] = set()
        for part in self._blocks():
            first = {chunk.passage_id: chunk.title for chunk in self.chunks[part] if chunk.passage_id not in seen}
            seen |= first.keys()
            rows = [(document_id(passage), title) for passage, title in first.items()]
            yield pd.DataFrame(rows, columns=list(NODE_COLUMNS[DOCUMENT]))

"""Copies a graph from one store to another and verifies the copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.graph.schema import CHUNK, ENTITY, Tables, VectorPart
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.fingerprint import StoredTables, content
from hopbench.retrieval.support.errors import InputError, StoreError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Copied:
    """The graph in the target; `fresh` is False if an equal one was there before."""

    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    fresh: bool


def copy_graph(source: GraphStore, target: GraphStore, embedder: Embedder) -> Copied:
    """Write the source's graph into the target, then read it back and compare fingerprint and counts.

    Vectors are those of `embedder`, which has them in its cache since the graph was built. Raises InputError where
    the source has no complete graph, StoreError where what came out is not what went in; writing again repairs that.
    """
    record = source.record()
    if record is None:
        raise InputError(f"{source.engine} holds no complete graph {source.namespace}: hopbench graph build")
    tables = StoredTables(source)
    held = content(tables)
    if held.fingerprint != record.get("fingerprint", held.fingerprint):
        raise StoreError(
            f"the graph {source.namespace} in {source.engine} is not what was built: its fingerprint is "
            f"{held.fingerprint[:12]}, {str(record['fingerprint'])[:12]} was written. Build it again with: "
            "hopbench graph build --force"
        )
    fresh = target.record() != record or content(StoredTables(target)) != held
    if fresh:
        target.write(_Embedded(tables, embedder), record)
        arrived = content(StoredTables(target))
        if arrived != held:
            raise StoreError(
                f"the copy of {source.namespace} in {target.engine} differs: {dict(arrived.nodes)} and "
                f"{dict(arrived.edges)} instead of {dict(held.nodes)} and {dict(held.edges)}, fingerprint "
                f"{arrived.fingerprint[:12]} instead of {held.fingerprint[:12]}. Copy it again"
            )
    return Copied(held.fingerprint, held.nodes, held.edges, fresh)


@dataclass(frozen=True)
class _Embedded:
    """Tables with the vectors of chunks and entities, a part in memory at a time."""

    tables: Tables
    embedder: Embedder

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `Tables.names`."""
        return self.tables.names()

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """See `Tables.parts`."""
        return self.tables.parts(name)

    def vector_parts(self) -> Iterator[VectorPart]:
        """See `Tables.vector_parts`."""
        for label, text in ((CHUNK, "content"), (ENTITY, "name")):
            for part in self.tables.parts(label):
                yield label, part["id"].tolist(), self.embedder.embed(part[text].tolist())

"""A team's own Neo4j graph as a store that is only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NoReturn

from hopbench.retrieval.graph.schema import CHUNK, GraphTables, Tables
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.graph.stores.fingerprint import export, fingerprint
from hopbench.retrieval.graph.stores.mapped.mapping import GraphMapping
from hopbench.retrieval.graph.stores.neo4j.connection import Connection
from hopbench.retrieval.graph.stores.neo4j.store import Neo4jStore
from hopbench.retrieval.support.errors import InputError


class MappedStore:
    """Reads through a mapping. `chunks` are the ids of the corpus: the graph's chunk ids must be among them.

    `build_key` is the one that the caller would build: the graph that is there counts as it.
    """

    engine = "neo4j"

    def __init__(
        self, connection: Connection, mapping: GraphMapping, *, chunks: frozenset[str], build_key: str = ""
    ) -> None:
        self.namespace = mapping.namespace
        self._inner = Neo4jStore(connection, mapping.namespace)
        self._mapping, self._chunks, self._build_key = mapping, chunks, build_key

    def read(self, query: str, **parameters: object) -> list[Record]:
        """See `GraphStore.read`."""
        return self._inner.read(self.rewrite(query), **parameters)

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`."""
        return self._inner.read_parts(self.rewrite(query))

    def rewrite(self, query: str) -> str:
        """A text of `cypher` as this graph's server gets it."""
        return self._mapping.rewrite(query)

    def reference(self) -> None:
        """See `Neo4jStore.reference`."""
        self._inner.reference()

    def record(self) -> Mapping[str, Any]:
        """The record of the graph's content. Raises InputError if it has no chunks, or chunks not in the corpus."""
        return self._record

    @cached_property
    def _record(self) -> Mapping[str, Any]:
        tables = export(self)
        self._check(tables)
        nodes, edges = tables.counts()
        made = {"settings": {}, "embedder": "", "build_seconds": 0.0}
        return {
            "build_key": self._build_key,
            "fingerprint": fingerprint(tables),
            "nodes": nodes,
            "edges": edges,
            **made,
        }

    def _check(self, tables: GraphTables) -> None:
        ids = tables.nodes[CHUNK]["id"].tolist()
        strange = sorted(str(chunk) for chunk in ids if chunk not in self._chunks)
        if not ids:
            raise InputError("--mapping: the graph has no chunks by these names: check labels.Chunk and the namespace")
        if strange:
            raise InputError(
                f"--mapping: {len(strange)} of the graph's {len(ids)} chunks are none of the corpus's "
                f"{len(self._chunks)}, such as {strange[0]!r}: properties.Chunk.id must give the corpus's passage ids"
            )

    def write(self, tables: Tables, record: Mapping[str, object]) -> NoReturn:
        """Refused."""
        raise InputError("a graph that is read through --mapping is never written: leave --mapping out to build one")

    def stamp(self) -> None:
        """None: a server has no cheap way to detect changes."""

    def drop(self) -> NoReturn:
        """Refused."""
        raise InputError("a graph that is read through --mapping is never removed: leave --mapping out")

    def close(self) -> None:
        """Close the pool."""
        self._inner.close()

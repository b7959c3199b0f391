"""A team's own Neo4j graph as a store that is only read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import CHUNK, EDGE_COLUMNS, RELATED_TO, GraphTables, Tables
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.graph.stores.fingerprint import export, fingerprint
from hopbench.retrieval.graph.stores.mapped.joined import Joined, joined_edges, joined_lists, joined_statements
from hopbench.retrieval.graph.stores.mapped.mapping import GraphMapping
from hopbench.retrieval.graph.stores.neo4j.connection import Connection
from hopbench.retrieval.graph.stores.neo4j.store import Neo4jStore
from hopbench.retrieval.support.errors import InputError

_EXPORTS = {cypher.export_edges(kind): kind for kind in EDGE_COLUMNS}
_LISTS = cypher.ADJACENCY, cypher.NAMES, cypher.DESCRIPTIONS


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
        self._left_out: dict[str, Sequence[int]] = {}  # merged and loops by edge type

    def read(self, query: str, **parameters: Any) -> list[Record]:
        """See `GraphStore.read`; a pair of nodes has one edge, and no node one to itself, whatever the graph has."""
        if query in _EXPORTS:
            edges, *self._left_out[_EXPORTS[query]] = self._edges(_EXPORTS[query])
            return edges
        if query == cypher.RELATIONS:
            return [self._relations(**parameters)]
        records = self._inner.read(self.rewrite(query), **parameters)
        if query == cypher.STRONGEST_RELATIONS:
            return list(map(joined_statements, records))
        return list(map(joined_lists, records)) if query in _LISTS else records

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`: in one, since relationships from a to b and from b to a are joined."""
        yield self.read(query)

    def rewrite(self, query: str) -> str:
        """A text of `cypher` as this graph's server gets it."""
        return self._mapping.rewrite(query if query in cypher.PARTS else cypher.one_each(query))

    def _edges(self, kind: str) -> Joined:
        return joined_edges(kind, self._inner.read(self.rewrite(cypher.export_edges(kind))))

    def _relations(self, usual: Collection[str]) -> Record:
        """`cypher.RELATIONS` of the edges as they are joined, whose strength may be that of a usual relation."""
        edges = [edge for edge in self._edges(RELATED_TO).edges if not set(edge["types"]) <= set(usual)]
        columns = {"source": "source", "target": "target", "types": "types", "weight": "strength"}
        return {"kind": RELATED_TO, **{name: [edge[column] for edge in edges] for name, column in columns.items()}}

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
        made = {"settings": {}, "embedder": "", "build_seconds": 0.0, "joined": self._joined()}
        return {
            "build_key": self._build_key,
            "fingerprint": fingerprint(tables),
            "nodes": nodes,
            "edges": edges,
            **made,
        }

    def _joined(self) -> list[str]:
        """What of the edges that were read is joined, and left out."""
        found = []
        if more := ", ".join(f"{merged:,} {kind}" for kind, (merged, _) in self._left_out.items() if merged):
            found.append(f"{more} relationships more than pairs of nodes: those of a pair count as one")
        if loops := ", ".join(f"{loops:,} {kind}" for kind, (_, loops) in self._left_out.items() if loops):
            found.append(f"{loops} relationships of a node to itself: they are left out")
        return [f"--mapping: the graph has {line}" for line in found]

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

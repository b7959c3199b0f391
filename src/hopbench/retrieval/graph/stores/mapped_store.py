"""A team's own Neo4j graph as a read-only store, with the relationships of a pair of nodes merged into one edge.

The rule is that of HopBench's builder for several triples about a pair (`hopbench.retrieval.graph.extract.triples`):
the highest strength, all types and tags, all wording, and each relation as a statement in its own direction. Of
mentions, too, the highest weight and count: a mention of unknown count counts 1, however often it stands. Undirected
edges (RELATED_TO, SIMILAR_TO) from a to b and from b to a are one. An edge of a node to itself is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.cypher.neo4j import one_each
from hopbench.retrieval.graph.schema import (
    CHUNK,
    DOCUMENT,
    EDGE_ENDS,
    EDGE_TYPES,
    LIST_COLUMNS,
    RELATED_TO,
    UNDIRECTED,
    Statement,
    Tables,
    encoded,
    statements_of,
)
from hopbench.retrieval.graph.stores.base import GraphStore, Record
from hopbench.retrieval.graph.stores.contents import content, export
from hopbench.retrieval.graph.stores.graph_mapping import GraphMapping
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.support.errors import InputError

WORDED = ("description", "text")  # all that is worded about a pair stands in the joined edge
WORDING = ("types", "description", "statements")


def joined_edges(kind: str, edges: Sequence[Record]) -> tuple[list[Record], int, int]:
    """Merge the edges of a type, records with `source`, `target` and some columns of `schema`, to one for each pair.

    Returns the numbers of relationships merged into others, and of loops left out, too.
    """
    undirected, alike = kind in UNDIRECTED, len(set(EDGE_ENDS[kind])) == 1
    by_pair: dict[tuple[str, str], list[Record]] = {}
    for edge in edges:
        ends = edge["source"], edge["target"]
        by_pair.setdefault((min(ends), max(ends)) if undirected else ends, []).append(edge)
    of_pairs = [same for ends, same in by_pair.items() if not alike or ends[0] != ends[1]]
    without_loops = sum(map(len, of_pairs))
    return [_joined(same) for same in of_pairs], without_loops - len(of_pairs), len(edges) - without_loops


def joined_lists(record: Record) -> Record:
    """Merge the edges in a record of parallel lists about a whole graph, and repeated titles of a chunk."""
    kind = record["kind"]
    if kind in EDGE_ENDS:
        columns = [name for name in record if name != "kind"]
        rows = zip(*(record[name] for name in columns), strict=True)
        edges, *_ = joined_edges(kind, [dict(zip(columns, row, strict=True)) for row in rows])
        return {"kind": kind, **{name: [edge[name] for edge in edges] for name in columns}}
    if kind == DOCUMENT:
        titles = list(dict.fromkeys(zip(record["id"], record["name"], strict=True)))
        return {**record, "id": [chunk for chunk, _ in titles], "name": [title for _, title in titles]}
    return record


def joined_statements(record: Record) -> Record:
    """Merge a record of `cypher.STRONGEST_RELATIONS` whose `statements` list the wording of each relationship."""
    rows = []
    for target, strength, parts in zip(record["target"], record["weight"], record["statements"], strict=True):
        ends = {True: (record["id"], target), False: (target, record["id"])}
        said = [dict(part, **dict(zip(("source", "target"), ends[part["forward"]], strict=True))) for part in parts]
        rows.append({**_joined(said), "strength": strength})
    forward = [row["source"] == record["id"] for row in rows]
    return {**record, **{name: [row[name] for row in rows] for name in WORDING}, "forward": forward}


def _joined(same: Sequence[Record]) -> Record:
    """Merge the edges of a pair; if all have the same wording and direction, it is unchanged."""
    if len(same) == 1:
        return same[0]
    row: dict[str, Any] = {}
    for name in same[0]:
        values = [edge[name] for edge in same]
        if name in LIST_COLUMNS:
            row[name] = sorted({one for value in values for one in value})
        else:
            row[name] = "; ".join(sorted(filter(None, set(values)))) if name in WORDED else max(values)
    ways = {(edge["source"], edge["target"]) for edge in same}
    row["source"], row["target"] = ways.pop() if len(ways) == 1 else sorted((same[0]["source"], same[0]["target"]))
    if "statements" in row:
        alike = len({(edge["source"], *(str(edge[name]) for name in WORDING)) for edge in same}) == 1
        row["statements"] = same[0]["statements"] if alike else _statements(same)  # alike as in a graph loaded twice
    return row


def _statements(same: Sequence[Record]) -> list[str]:
    """The directed statements, each with its highest weight; edges without wording have none."""
    found: dict[object, Statement] = {}
    for edge in (edge for edge in same if any(edge[name] for name in WORDING)):
        ends = edge["source"], edge["target"], edge["strength"]
        for statement in statements_of(*ends, edge["types"], edge["description"], edge["statements"]):
            known = found.get(statement.key)
            if statement.directed and (known is None or statement.weight > known.weight):
                found[statement.key] = statement
    return encoded(found.values())


_EXPORTS = {cypher.EXPORTS[kind]: kind for kind in EDGE_TYPES}
_LISTS = cypher.ADJACENCY, cypher.NAMES, cypher.DESCRIPTIONS


class MappedStore(GraphStore):
    """Reads a graph through a mapping. Its chunk ids must be among `chunks`, those of the corpus.

    `build_key` is that of the caller's plan, for which the external graph is used.
    """

    engine = "neo4j"

    def __init__(
        self, connection: Connection, mapping: GraphMapping, *, chunks: frozenset[str], build_key: str = ""
    ) -> None:
        self.namespace = mapping.namespace
        self._inner = Neo4jStore(connection, mapping.namespace)
        self._mapping, self._chunks, self._build_key = mapping, chunks, build_key
        self._left_out: dict[str, Sequence[int]] = {}  # edge type → (merged, loops)

    def read(self, query: str, **parameters: Any) -> list[Record]:
        """See `GraphStore.read`; relationships of a pair are merged to one edge, and loops are left out."""
        if query in _EXPORTS:
            kind = _EXPORTS[query]
            edges, *self._left_out[kind] = joined_edges(kind, self._inner.read(self.rewrite(query)))
            return edges
        if query == cypher.RELATIONS:  # of the merged edges, whose strength may come from a usual relation
            usual = set(parameters["usual"])
            edges = [edge for edge in self.read(cypher.EXPORTS[RELATED_TO]) if not usual.issuperset(edge["types"])]
            columns = {"source": "source", "target": "target", "types": "types", "weight": "strength"}
            return [{"kind": RELATED_TO, **{name: [edge[own] for edge in edges] for name, own in columns.items()}}]
        records = self._inner.read(self.rewrite(query), **parameters)
        if query == cypher.STRONGEST_RELATIONS:
            return list(map(joined_statements, records))
        return list(map(joined_lists, records)) if query in _LISTS else records

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`: in one part, since relationships from a to b and from b to a are merged."""
        yield self.read(query)

    def rewrite(self, query: str) -> str:
        """Rewrite a query of `cypher` for this graph's server."""
        return self._mapping.rewrite(query if query in cypher.PARTS else one_each(query))

    def reference(self) -> None:
        """See `Neo4jStore.reference`."""
        self._inner.reference()

    def record(self) -> Mapping[str, Any]:
        """The record of the graph's content. Raises InputError if it has no chunks, or chunks not in the corpus."""
        return self._record

    @cached_property
    def _record(self) -> Mapping[str, Any]:
        tables = export(self)
        ids = tables.nodes[CHUNK]["id"].tolist()
        unknown = sorted(str(chunk) for chunk in ids if chunk not in self._chunks)
        if not ids:
            raise InputError("--mapping: the graph has no chunks by these names: check labels.Chunk and the namespace")
        if unknown:
            raise InputError(
                f"--mapping: {len(unknown)} of the graph's {len(ids)} chunks are none of the corpus's "
                f"{len(self._chunks)}, such as {unknown[0]!r}: properties.Chunk.id must give the corpus's passage ids"
            )
        joined = []
        merged, loops = (
            ", ".join(f"{counts[place]:,} {kind}" for kind, counts in self._left_out.items() if counts[place])
            for place in (0, 1)
        )
        if merged:
            joined.append(f"{merged} relationships more than pairs of nodes: those of a pair count as one")
        if loops:
            joined.append(f"{loops} relationships of a node to itself: they are left out")
        return {
            "build_key": self._build_key,
            **content(tables),
            "settings": {},
            "embedder": "",
            "build_seconds": 0.0,
            "joined": [f"--mapping: the graph has {line}" for line in joined],
        }

    def write(self, tables: Tables, record: Mapping[str, object]) -> NoReturn:
        """Raise InputError: the graph is read-only."""
        raise InputError("a graph that is read through --mapping is never written: leave --mapping out to build one")

    def stamp(self) -> None:
        """Return None: an external graph has no cheap way to detect changes."""

    def drop(self) -> NoReturn:
        """Raise InputError: the graph is read-only."""
        raise InputError("a graph that is read through --mapping is never removed: leave --mapping out")

    def close(self) -> None:
        """Close the pool."""
        self._inner.close()

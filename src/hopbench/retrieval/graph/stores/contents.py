"""Reads a graph back out of its store: for its fingerprint and counts, and to copy it to another store."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pandas as pd

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    EDGE_COLUMNS,
    ENTITY,
    LIST_COLUMNS,
    NODE_COLUMNS,
    SPARSE_COLUMNS,
    GraphTables,
    Tables,
    VectorPart,
)
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.support.errors import InputError, StoreError

if TYPE_CHECKING:
    import pandas as pd

LINES_PER_BATCH = 100_000  # sorted lines converted to strings at a time


@dataclass(frozen=True)
class Content:
    """A graph's fingerprint, and its rows per node label and per edge type."""

    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]


@dataclass(frozen=True)
class StoredTables:
    """The content of a store's namespace, read in the store's parts."""

    store: GraphStore

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `schema.Tables`."""
        return list(NODE_COLUMNS), list(EDGE_COLUMNS)

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """See `schema.Tables`; an empty part if there are no rows."""
        columns = list(NODE_COLUMNS.get(name) or EDGE_COLUMNS[name])
        if isinstance(self.store, ArrayStore):
            yield from (_filled(pd.DataFrame(part, columns=columns)) for part in self.store.table_parts(name))
            return
        query = cypher.export_nodes(name) if name in NODE_COLUMNS else cypher.export_edges(name)
        for records in self.store.read_parts(query):
            yield _filled(pd.DataFrame(records, columns=columns))

    def vector_parts(self) -> Iterator[VectorPart]:
        """Nothing: vectors follow from the content."""
        return iter(())


def export(store: GraphStore) -> GraphTables:
    """Read the whole content of the store's namespace."""
    stored = StoredTables(store)
    whole = {name: pd.concat(stored.parts(name), ignore_index=True) for name in chain(*stored.names())}
    return GraphTables({name: whole[name] for name in NODE_COLUMNS}, {name: whole[name] for name in EDGE_COLUMNS})


def _filled(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty lists for missing values of sparse columns."""
    for name in SPARSE_COLUMNS.intersection(table.columns):
        table[name] = [value or [] for value in table[name]]
    return table


def fingerprint(tables: Tables) -> str:
    """SHA-256 of the sorted rows of every node label and edge type; independent of engine and order.

    Numbers are rounded to 6 decimals, lists sorted and missing values empty, since engines differ in these.
    """
    return content(tables).fingerprint


def content(tables: Tables) -> Content:
    """Compute fingerprint and counts in one pass, holding one label or type in memory at a time, as text."""
    digest = hashlib.sha256()
    nodes, edges = tables.names()
    counts: dict[str, int] = {}
    for name in [*sorted(nodes), *sorted(edges)]:
        digest.update(f"{name}\n".encode())
        counts[name] = 0
        for line in _sorted(map(_lines, tables.parts(name))):
            digest.update(line.encode() + b"\n")
            counts[name] += 1
    return Content(digest.hexdigest(), {name: counts[name] for name in nodes}, {name: counts[name] for name in edges})


def _sorted(parts: Iterator[list[str]]) -> Iterator[str]:
    """The lines of all parts in order; several parts are held as Arrow arrays, half the size of strings."""
    first, second = next(parts, []), next(parts, None)
    if second is None:
        yield from sorted(first)
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pa.chunked_array([pa.array(part, pa.large_string()) for part in chain((first, second), parts)])
    order = pc.sort_indices(lines)  # UTF-8 bytes sort like code points
    for begin in range(0, len(order), LINES_PER_BATCH):
        yield from lines.take(order[begin : begin + LINES_PER_BATCH]).to_pylist()


def _lines(table: pd.DataFrame) -> list[str]:
    columns = [_texts(name, table[name].tolist()) for name in table.columns]
    return list(map("\x1f".join, zip(*columns, strict=True)))


def _texts(name: str, values: list[Any]) -> list[str]:
    """One column's values as text; columns are joined by a separator that no text contains."""
    if name in LIST_COLUMNS:
        return ["\x1e".join(sorted(value)) if isinstance(value, list) else "" for value in values]
    if values and isinstance(values[0], float):
        return ["" if math.isnan(value) else f"{value:.6f}" for value in values]
    return ["" if value is None else str(value) for value in values]


@dataclass(frozen=True)
class Copied:
    """The graph in the target; `fresh` is False if an equal one was there already."""

    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    fresh: bool


def copy_graph(source: GraphStore, target: GraphStore, embedder: Embedder) -> Copied:
    """Write the source's graph into the target, then read it back and compare fingerprint and counts.

    Vectors come from `embedder`, which has cached them since the build. Raises InputError if the source has no complete
    graph, StoreError if the copy differs; copying again repairs that.
    """
    record = source.record()
    if record is None:
        raise InputError(f"{source.engine} holds no complete graph {source.namespace}: hopbench graph build")
    tables = StoredTables(source)
    original = content(tables)
    if original.fingerprint != record.get("fingerprint", original.fingerprint):
        raise StoreError(
            f"the graph {source.namespace} in {source.engine} is not what was built: its fingerprint is "
            f"{original.fingerprint[:12]}, {str(record['fingerprint'])[:12]} was written. Build it again with: "
            "hopbench graph build --force"
        )
    fresh = target.record() != record or content(StoredTables(target)) != original
    if fresh:
        target.write(_Embedded(tables, embedder), record)
        copied = content(StoredTables(target))
        if copied != original:
            raise StoreError(
                f"the copy of {source.namespace} in {target.engine} differs: {dict(copied.nodes)} and "
                f"{dict(copied.edges)} instead of {dict(original.nodes)} and {dict(original.edges)}, fingerprint "
                f"{copied.fingerprint[:12]} instead of {original.fingerprint[:12]}. Copy it again"
            )
    return Copied(original.fingerprint, original.nodes, original.edges, fresh)


@dataclass(frozen=True)
class _Embedded:
    """Tables with the vectors of chunks and entities, one part in memory at a time."""

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

"""Reads a graph back out of its store: for its fingerprint, its counts, and to copy it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pandas as pd

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    EDGE_COLUMNS,
    LIST_COLUMNS,
    NODE_COLUMNS,
    SPARSE_COLUMNS,
    GraphTables,
    Tables,
    VectorPart,
)
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore

LINES = 100_000  # sorted lines that are strings at a time


@dataclass(frozen=True)
class Content:
    """What a graph holds: its fingerprint, and the rows per node label and per edge type."""

    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]


@dataclass(frozen=True)
class StoredTables:
    """The content of the store's namespace, read in the parts that the store gives."""

    store: GraphStore

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `schema.Tables`."""
        return list(NODE_COLUMNS), list(EDGE_COLUMNS)

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """See `schema.Tables`; an empty part where there are no rows."""
        columns = list(NODE_COLUMNS.get(name) or EDGE_COLUMNS[name])
        if isinstance(self.store, ArrayStore):
            yield from (_filled(pd.DataFrame(part, columns=columns)) for part in self.store.table_parts(name))
            return
        query = cypher.export_nodes(name) if name in NODE_COLUMNS else cypher.export_edges(name)
        for records in self.store.read_parts(query):
            yield _filled(pd.DataFrame(records, columns=columns))

    def vector_parts(self) -> Iterator[VectorPart]:
        """None: they follow from the content."""
        return iter(())


def export(store: GraphStore) -> GraphTables:
    """The whole content of the store's namespace."""
    stored = StoredTables(store)
    whole = {name: pd.concat(stored.parts(name), ignore_index=True) for name in chain(*stored.names())}
    return GraphTables({name: whole[name] for name in NODE_COLUMNS}, {name: whole[name] for name in EDGE_COLUMNS})


def _filled(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty lists for missing values of sparse columns."""
    for name in SPARSE_COLUMNS.intersection(table.columns):
        table[name] = [value or [] for value in table[name]]
    return table


def fingerprint(tables: Tables) -> str:
    """SHA-256 over the sorted rows of every node label and edge type; independent of engine and order.

    Numbers are rounded to 6 decimals, lists sorted, missing values empty, so that what an engine does with
    them does not show.
    """
    return content(tables).fingerprint


def content(tables: Tables) -> Content:
    """The fingerprint with the counts, in one pass; of a large graph one label or type is held at a time, as text."""
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
    """The lines of all parts in order; those of several parts wait in Arrow's arrays, half the size of strings."""
    first, second = next(parts, []), next(parts, None)
    if second is None:
        yield from sorted(first)
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pa.chunked_array([pa.array(part, pa.large_string()) for part in chain((first, second), parts)])
    order = pc.sort_indices(lines)  # by bytes of UTF-8, whose order is that of the code points
    for begin in range(0, len(order), LINES):
        yield from lines.take(order[begin : begin + LINES]).to_pylist()


def _lines(table: pd.DataFrame) -> list[str]:
    columns = [_texts(name, table[name].tolist()) for name in table.columns]
    return list(map("\x1f".join, zip(*columns, strict=True)))


def _texts(name: str, values: list[Any]) -> list[str]:
    """One column's values as text; columns are joined by a separator that text does not contain."""
    if name in LIST_COLUMNS:
        return ["\x1e".join(sorted(value)) if isinstance(value, list) else "" for value in values]
    if values and isinstance(values[0], float):
        return ["" if math.isnan(value) else f"{value:.6f}" for value in values]
    return ["" if value is None else str(value) for value in values]

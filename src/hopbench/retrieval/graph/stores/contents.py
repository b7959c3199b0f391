"""Reads a graph back out of its store: for its fingerprint and counts, and to copy it to another store."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pandas as pd

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    COLUMNS,
    DOCUMENT_EDGES,
    EDGE_COLUMNS,
    ENTITY,
    LIST_COLUMNS,
    NODE_COLUMNS,
    SPARSE_COLUMNS,
    GraphTables,
    TableParts,
    Tables,
    VectorPart,
)
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore, table_parts
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.support.errors import InputError, StoreError

LINES_PER_BATCH = 100_000  # sorted lines converted to strings at a time


def stored_tables(store: GraphStore) -> TableParts:
    """The content of the store's namespace, read in the store's parts; without vectors, which follow from it."""

    def parts(name: str) -> Iterator[pd.DataFrame]:
        found: Iterator[Any] = (
            table_parts(store.graph, name) if isinstance(store, ArrayStore) else store.read_parts(cypher.EXPORTS[name])
        )
        for part in found:
            table = pd.DataFrame(part, columns=list(COLUMNS[name]))
            for column in SPARSE_COLUMNS.intersection(table.columns):
                table[column] = [value or [] for value in table[column]]
            yield table

    return TableParts(parts)


def export(store: GraphStore) -> GraphTables:
    """Read the whole content of the store's namespace."""
    stored = stored_tables(store)
    whole = {name: pd.concat(stored.parts(name), ignore_index=True) for name in COLUMNS}
    return GraphTables({name: whole[name] for name in NODE_COLUMNS}, {name: whole[name] for name in EDGE_COLUMNS})


def fingerprint(tables: Tables) -> str:
    """The fingerprint alone; see `content`."""
    fingerprint: str = content(tables)["fingerprint"]
    return fingerprint


def content(tables: Tables) -> dict[str, Any]:
    """Compute `fingerprint`, and rows by label and type (`nodes`, `edges`) in one pass, a label or type at a time.

    The fingerprint is the SHA-256 of the sorted rows of every node label and edge type, independent of engine and
    order; edges of documents are part of it where there are any. Numbers are rounded to 6 decimals, lists sorted and
    missing values empty, since engines differ in these.
    """
    digest = hashlib.sha256()
    counts = dict.fromkeys(COLUMNS, 0)
    for name in [*sorted(NODE_COLUMNS), *sorted(EDGE_COLUMNS)]:
        if name not in DOCUMENT_EDGES:
            digest.update(f"{name}\n".encode())
        for line in _sorted(map(_lines, tables.parts(name))):
            if name in DOCUMENT_EDGES and not counts[name]:
                digest.update(f"{name}\n".encode())
            digest.update(line.encode() + b"\n")
            counts[name] += 1
    nodes, edges = (
        {name: counts[name] for name in columns if counts[name] or name not in DOCUMENT_EDGES}
        for columns in (NODE_COLUMNS, EDGE_COLUMNS)
    )
    return {"fingerprint": digest.hexdigest(), "nodes": nodes, "edges": edges}


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
    """The rows as text; columns are joined by a separator that no text contains."""
    columns: list[list[str]] = []
    for name in table.columns:
        values = table[name].tolist()
        if name in LIST_COLUMNS:
            columns.append(["\x1e".join(sorted(value)) if isinstance(value, list) else "" for value in values])
        elif values and isinstance(values[0], float):
            columns.append(["" if math.isnan(value) else f"{value:.6f}" for value in values])
        else:
            columns.append(["" if value is None else str(value) for value in values])
    return list(map("\x1f".join, zip(*columns, strict=True)))


def copy_graph(source: GraphStore, target: GraphStore, embedder: Embedder) -> tuple[dict[str, Any], bool]:
    """Write the source's graph into the target, then read it back and compare fingerprint and counts.

    Vectors come from `embedder`, which has cached them since the build. Returns the content, and False if the target
    held it already. Raises InputError if the source has no complete graph, StoreError if the copy differs; copying
    again repairs that.
    """
    record = source.record()
    if record is None:
        raise InputError(f"{source.engine} holds no complete graph {source.namespace}: hopbench graph build")
    tables = stored_tables(source)
    original = content(tables)
    if original["fingerprint"] != record.get("fingerprint", original["fingerprint"]):
        raise StoreError(
            f"the graph {source.namespace} in {source.engine} is not what was built: its fingerprint is "
            f"{original['fingerprint'][:12]}, {str(record['fingerprint'])[:12]} was written. Build it again with: "
            "hopbench graph build --force"
        )
    if target.record() == record and content(stored_tables(target)) == original:
        return original, False

    def embedded() -> Iterator[VectorPart]:
        for label, text in ((CHUNK, "content"), (ENTITY, "name")):
            for part in tables.parts(label):
                yield label, part["id"].tolist(), embedder.embed(part[text].tolist())

    target.write(TableParts(tables.parts, embedded), record)
    copied = content(stored_tables(target))
    if copied != original:
        raise StoreError(
            f"the copy of {source.namespace} in {target.engine} differs: {copied['nodes']} and "
            f"{copied['edges']} instead of {original['nodes']} and {original['edges']}, fingerprint "
            f"{copied['fingerprint'][:12]} instead of {original['fingerprint'][:12]}. Copy it again"
        )
    return original, True

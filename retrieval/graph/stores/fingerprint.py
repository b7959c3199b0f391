"""Reads a graph back out of its store: for its fingerprint, its counts, and to copy it."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pandas as pd

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, LIST_COLUMNS, NODE_COLUMNS, SPARSE_COLUMNS, GraphTables
from hopbench.retrieval.graph.stores.base import GraphStore


def export(store: GraphStore) -> GraphTables:
    """The whole content of the store's namespace."""
    nodes = {
        label: pd.DataFrame(store.read(cypher.export_nodes(label)), columns=list(columns))
        for label, columns in NODE_COLUMNS.items()
    }
    edges = {
        kind: _filled(pd.DataFrame(store.read(cypher.export_edges(kind)), columns=list(columns)))
        for kind, columns in EDGE_COLUMNS.items()
    }
    return GraphTables(nodes, edges)


def _filled(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty lists for missing values of sparse columns."""
    for name in SPARSE_COLUMNS.intersection(table.columns):
        table[name] = [value or [] for value in table[name]]
    return table


def fingerprint(tables: GraphTables) -> str:
    """SHA-256 over the sorted rows of every node label and edge type; independent of engine and order.

    Numbers are rounded to 6 decimals, lists sorted, missing values empty, so that what an engine does with
    them does not show.
    """
    digest = hashlib.sha256()
    for name, table in [*sorted(tables.nodes.items()), *sorted(tables.edges.items())]:
        digest.update(f"{name}\n".encode())
        for line in sorted(_lines(table)):
            digest.update(line.encode() + b"\n")
    return digest.hexdigest()


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

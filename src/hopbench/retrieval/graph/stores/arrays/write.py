"""Writes tables as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.format import write_array_header_1_0

from hopbench.retrieval.graph.schema import CHUNK, EDGE_COLUMNS, EDGE_ENDS, NODE_COLUMNS, Tables
from hopbench.retrieval.graph.stores.arrays.graph import EndsWriter, edge_writer, node_writer, write_sides
from hopbench.retrieval.graph.stores.arrays.nodes import Nodes
from hopbench.retrieval.graph.stores.arrays.unfinished import UnfinishedGraph
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.text_columns import Texts
from hopbench.retrieval.support.text_index import write_index

if TYPE_CHECKING:
    import pandas as pd

VECTORS = ".vectors.npy"


def write_tables(unfinished: UnfinishedGraph, tables: Tables) -> None:
    """The tables as arrays, read part by part: nodes first, since edges are kept as rows of their ends.

    Of the vectors only the chunks' are kept, which every search reads.
    """
    for label in NODE_COLUMNS:
        unfinished.once(label, partial(_write_nodes, unfinished.folder, label, tables))
    for kind in EDGE_COLUMNS:
        unfinished.once(kind, partial(_write_edges, unfinished.folder, kind, tables))
    unfinished.once(VECTORS, partial(_write_vectors, unfinished.folder, tables))


def _write_nodes(folder: Path, label: str, tables: Tables) -> None:
    with node_writer(folder, label) as nodes:
        for part in tables.parts(label):
            nodes.add(_columns(part, NODE_COLUMNS[label]))
    write_index(Texts(folder / f"{label}.id"), folder / label)


def _write_edges(folder: Path, kind: str, tables: Tables) -> None:
    ends = EndsWriter(folder, kind)
    with edge_writer(folder, kind) as edges:
        for part in tables.parts(kind):
            known = ends.add(part["source"].tolist(), part["target"].tolist())
            edges.add(_columns(part[known], EDGE_COLUMNS[kind][2:]))
    write_sides(folder, kind, *(len(Nodes(folder, label)) for label in EDGE_ENDS[kind]))


def _write_vectors(folder: Path, tables: Tables) -> None:
    """The chunks' vectors, where they come in the order of the nodes; a mapped file would crash on a full disk."""
    nodes, place, written = Nodes(folder, CHUNK), folder / f"{CHUNK}{VECTORS}", 0
    chunks = len(nodes)
    with place.open("wb") as file:
        for label, ids, vectors in tables.vector_parts():
            if label == CHUNK and np.array_equal(nodes.rows(ids), np.arange(written, written + len(ids))):
                if not written:
                    header = {"descr": "<f4", "fortran_order": False, "shape": (chunks, vectors.shape[1])}
                    write_array_header_1_0(file, header)
                file.write(np.ascontiguousarray(on_grid(vectors)).tobytes())
                written += len(ids)
            if written == chunks:
                break  # names are embedded as their part is asked for: no next one is
    if not chunks or written < chunks:
        place.unlink()


def _columns(part: pd.DataFrame, names: Sequence[str]) -> dict[str, list[Any]]:
    return {
        name: values.tolist() for name, values in part.reindex(columns=list(names)).items() if isinstance(name, str)
    }

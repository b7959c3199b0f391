"""Writes tables as arrays, part by part: nodes first, since edges are kept as rows of their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.format import write_array_header_1_0

from hopbench.retrieval.graph.schema import (
    CHUNK,
    EDGE_COLUMNS,
    EDGE_TYPES,
    LIST_COLUMNS,
    NODE_COLUMNS,
    Tables,
    full_parts,
)
from hopbench.retrieval.graph.stores.arrays.graph import END, NUMBERS, WEIGHT, Nodes
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.texts import OFFSET, ROW, Texts, TextsWriter, mapped, write_index

if TYPE_CHECKING:
    import pandas as pd

VECTORS = ".vectors.npy"


def write_tables(folder: Path, tables: Tables) -> None:
    """The tables as arrays in an empty folder. Of the vectors only the chunks' are kept, which every search reads."""
    for label, columns in NODE_COLUMNS.items():
        with _columns(folder, label, columns) as add:
            for _, part in full_parts(tables, {label: columns}):
                add(part)
        write_index(Texts(folder / f"{label}.id"), folder / label)
    for kind, columns in EDGE_COLUMNS.items():
        nodes = [Nodes(folder, label) for label in EDGE_TYPES[kind][:2]]
        with _columns(folder, kind, columns) as add:
            for _, part in full_parts(tables, {kind: columns}):
                source, target = (near.rows(part[end].tolist()) for near, end in zip(nodes, columns[:2], strict=True))
                known = (source >= 0) & (target >= 0)  # an edge to a node that is not there is left out
                add(part.assign(source=source, target=target)[known])
        _write_sides(folder, kind, nodes)
    _write_vectors(folder, tables)


@contextmanager
def _columns(folder: Path, table: str, names: Sequence[str]) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Create the files of a table's columns; gives the function that appends a part."""
    with ExitStack() as stack:
        numbers = {
            name: stack.enter_context((folder / f"{table}.{name}.bin").open("wb")) for name in names if name in NUMBERS
        }
        texts = {
            name: stack.enter_context(TextsWriter(folder / f"{table}.{name}")) for name in names if name not in NUMBERS
        }

        def add(part: pd.DataFrame) -> None:
            for name in names:
                values = part[name].tolist()
                if name in NUMBERS:
                    numbers[name].write(np.asarray(values, NUMBERS[name]).tobytes())
                elif name in LIST_COLUMNS:
                    lists = (value if isinstance(value, list) else () for value in values)
                    texts[name].add(["".join(f"{text}{END}" for text in value) for value in lists])
                else:
                    texts[name].add(values)

        yield add


def _write_sides(folder: Path, kind: str, nodes: Sequence[Nodes]) -> None:
    """Write the edges by source and by target of a type whose table is written; far ends ascend within a node."""
    ends = [mapped(folder / f"{kind}.{end}.bin", ROW) for end in ("source", "target")]
    weight = EDGE_TYPES[kind].weight
    weights = mapped(folder / f"{kind}.{weight}.bin", WEIGHT) if weight else np.zeros(len(ends[0]))
    for place, side in enumerate(("out", "in")):
        near, far = ends[place], ends[1 - place]
        order = np.lexsort((far, near))
        begins = np.searchsorted(near, np.arange(len(nodes[place]) + 1), sorter=order)
        for part, values in (
            ("begins", begins.astype(OFFSET)),
            ("edges", order.astype(ROW)),
            ("others", far[order]),
            ("weights", weights[order]),
        ):
            (folder / f"{kind}.{side}.{part}.bin").write_bytes(values.tobytes())


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

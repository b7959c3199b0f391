"""A graph as memory-mapped arrays, and the steps from node to node that queries are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import EDGE_COLUMNS, EDGE_ENDS, NODE_COLUMNS
from hopbench.retrieval.graph.stores.arrays.columns import ColumnWriter
from hopbench.retrieval.graph.stores.arrays.edges import IN, OUT, Edges, Ints, write_sides
from hopbench.retrieval.graph.stores.arrays.nodes import Nodes
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.support.text_index import ROW


class Around(NamedTuple):
    """The edges at a node: numbers of the edges, rows of their far ends, and weights."""

    edges: NDArray[np.int32]
    others: NDArray[np.int32]
    weights: NDArray[np.float64]

    def where(self, mask: NDArray[np.bool_]) -> Around:
        """Some of the edges."""
        return Around(self.edges[mask], self.others[mask], self.weights[mask])


class Gathered(NamedTuple):
    """The edges at several nodes, node by node: `owners` says which of the `nodes` nodes each is at."""

    owners: Ints
    around: Around
    nodes: int

    def where(self, mask: NDArray[np.bool_]) -> Gathered:
        """Some of the edges."""
        return Gathered(self.owners[mask], self.around.where(mask), self.nodes)

    @property
    def degrees(self) -> Ints:
        """How many edges each node has here."""
        return np.bincount(self.owners, minlength=self.nodes)

    def parts(self) -> Iterator[slice]:
        """Where each node's edges stand."""
        ends = np.cumsum(self.degrees).tolist()
        return (slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))


class ArrayGraph:
    """The graph in a folder that `write_tables` wrote."""

    def __init__(self, folder: Path) -> None:
        self.nodes = {label: Nodes(folder, label) for label in NODE_COLUMNS}
        self.edges = {kind: Edges(folder, kind) for kind in EDGE_COLUMNS}

    @cached_property
    def touching(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Label → the (edge type, side) at which its nodes stand."""
        sides = [
            (kind, side, end) for kind, ends in EDGE_ENDS.items() for side, end in zip((OUT, IN), ends, strict=True)
        ]
        return {label: tuple((kind, side) for kind, side, end in sides if end == label) for label in NODE_COLUMNS}

    def around(self, label: str, row: int, kind: str) -> Around:
        """The edges of a type at a node, whichever way they point: those it is the source of first."""
        return self.gathered(label, np.array([row]), kind).around

    def gathered(self, label: str, rows: Ints, kind: str) -> Gathered:
        """`around` of several nodes, one after the other, in a few array operations; a row of -1 has no edges."""
        found = [self._on_side(rows, kind, side) for own, side in self.touching[label] if own == kind]
        if len(found) == 1:
            return found[0]
        owners = np.concatenate([part.owners for part in found])
        order = owners.argsort(kind="stable")
        columns = zip(*(part.around for part in found), strict=True)
        return Gathered(owners[order], Around(*(np.concatenate(column)[order] for column in columns)), len(rows))

    def _on_side(self, rows: Ints, kind: str, side: str) -> Gathered:
        table = self.edges[kind].side(side)
        begins, ends = table.begins[rows], table.begins[rows + 1]
        begins = np.where(rows >= 0, begins, ends)
        places, owners = expand_ranges(begins, ends)
        return Gathered(owners, Around(table.edges[places], table.others[places], table.weights[places]), len(rows))

    def ids(self, label: str, rows: Sequence[int] | NDArray[np.int32] | Ints) -> list[str]:
        """The ids of nodes."""
        return self.nodes[label].ids.many(np.asarray(rows, np.int64))


class EndsWriter:
    """Turns the ids of edges' ends into rows and writes them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._nodes = [Nodes(folder, label) for label in EDGE_ENDS[kind]]
        self._files = [folder / f"{kind}.{end}.bin" for end in ("source", "target")]
        for file in self._files:
            file.write_bytes(b"")

    def add(self, *ends: Sequence[str]) -> NDArray[np.bool_]:
        """Append edges; True for each whose ends are both nodes, and no other is written."""
        rows = [nodes.rows(ids) for nodes, ids in zip(self._nodes, ends, strict=True)]
        known: NDArray[np.bool_] = (rows[0] >= 0) & (rows[1] >= 0)
        for file, values in zip(self._files, rows, strict=True):
            with file.open("ab") as opened:
                opened.write(values[known].astype(ROW).tobytes())
        return known


def node_writer(folder: Path, label: str) -> ColumnWriter:
    """Writes the table of a label; `text_index.write_index` follows."""
    return ColumnWriter(folder, label, NODE_COLUMNS[label])


def edge_writer(folder: Path, kind: str) -> ColumnWriter:
    """Writes the table of an edge type without its ends; `write_sides` follows."""
    return ColumnWriter(folder, kind, EDGE_COLUMNS[kind][2:])


__all__ = ["Around", "ArrayGraph", "EndsWriter", "edge_writer", "node_writer", "write_sides"]

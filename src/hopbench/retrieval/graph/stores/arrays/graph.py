"""A graph as memory-mapped arrays: columns of its tables, nodes and edges, and the steps from node to node.

A file holds plain little-endian values, so that a column is written part by part and read anywhere without loading the
rest. Processes that read the same graph share its pages: the machine holds one copy of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import EDGE_ENDS, EDGE_TYPES, LIST_COLUMNS, NODE_COLUMNS, WEIGHT_OF
from hopbench.retrieval.support.arrays import expand_ranges
from hopbench.retrieval.support.texts import OFFSET, ROW, TextIndex, Texts, mapped

WEIGHT = "<f8"
NUMBERS: Mapping[str, str] = {
    "index": "<i8",
    "count": "<i8",
    "source": ROW,
    "target": ROW,
    **dict.fromkeys(WEIGHT_OF.values(), WEIGHT),
}
END = "\x1e"  # ends each text of a list; no text contains it
Ints = NDArray[np.int64]


class Numbers:
    """A column of numbers."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def many(self, rows: Ints) -> list[Any]:
        """The values of some rows."""
        values: list[Any] = self.values[rows].tolist()
        return values


class Lists(Texts):
    """A column of lists of texts; a list is the text of all of its texts."""

    def many(self, rows: NDArray[np.integer[Any]]) -> list[Any]:
        """The lists of some rows; equal texts are one object, since edges share their words."""
        return [list(map(intern, text.split(END)[:-1])) for text in super().many(rows)]

    def with_others(self, usual: Collection[str]) -> Ints:
        """The rows whose list has a text that is not among `usual`."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(np.append(np.zeros(1, OFFSET), self._ends)), pa.py_buffer(self._bytes)]
        lists = pa.Array.from_buffers(pa.large_string(), len(self), buffers).dictionary_encode()
        unusual = [not set(usual).issuperset(text.split(END)[:-1]) for text in lists.dictionary.to_pylist()]
        return np.flatnonzero(np.array(unusual, np.bool_)[lists.indices.to_numpy()])


Column = Numbers | Texts


def _columns(folder: Path, table: str, names: Sequence[str]) -> dict[str, Column]:
    return {
        name: Numbers(mapped(folder / f"{table}.{name}.bin", NUMBERS[name]))
        if name in NUMBERS
        else (Lists if name in LIST_COLUMNS else Texts)(folder / f"{table}.{name}")
        for name in names
    }


class Nodes(TextIndex):
    """The nodes of a label by row, found by their ids; `columns` are those of the schema."""

    def __init__(self, folder: Path, label: str) -> None:
        self.ids = Texts(folder / f"{label}.id")
        self.columns = _columns(folder, label, NODE_COLUMNS[label])
        super().__init__(self.ids, folder / label)

    def __len__(self) -> int:
        return len(self.ids)


class Edges:
    """The edges of a type: rows of their ends, weights, and the `columns` of the schema beside the ends.

    A side is "out" or "in": the edges of the node at row i as their source or as their target are
    `edges[begins[i]:begins[i+1]]`, with `others`, the rows of their far ends, and their weights in the same order.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.source, self.target = (mapped(folder / f"{kind}.{end}.bin", ROW) for end in ("source", "target"))
        self.columns = _columns(folder, kind, EDGE_TYPES[kind].columns)
        weight = self.columns.get(EDGE_TYPES[kind].weight or "")
        self.weights = weight.values if isinstance(weight, Numbers) else np.ones(len(self.source))
        self.sides = {
            (side, part): mapped(folder / f"{kind}.{side}.{part}.bin", dtype)
            for side in ("out", "in")
            for part, dtype in (("begins", OFFSET), ("edges", ROW), ("others", ROW), ("weights", WEIGHT))
        }

    def __len__(self) -> int:
        return len(self.source)


class Gathered(NamedTuple):
    """The edges at `nodes` nodes, node by node: `owners` says which of them each is at.

    `edges` are their numbers, `others` the rows of their far ends.
    """

    owners: Ints
    edges: Ints
    others: Ints
    weights: NDArray[np.float64]
    nodes: int

    def where(self, mask: NDArray[np.bool_]) -> Gathered:
        """Some of the edges."""
        owners, edges, others, weights, nodes = self
        return Gathered(owners[mask], edges[mask], others[mask], weights[mask], nodes)

    @property
    def degrees(self) -> Ints:
        """How many edges each node has here."""
        return np.bincount(self.owners, minlength=self.nodes)

    @property
    def far_ends(self) -> Ints:
        """The far ends, each once, in the order of their first edges."""
        return np.array(list(dict.fromkeys(self.others.tolist())), np.int64)

    def parts(self) -> Iterator[slice]:
        """Where each node's edges stand."""
        ends = np.cumsum(self.degrees).tolist()
        return map(slice, [0, *ends], ends)


class ArrayGraph:
    """The graph in a folder that `write_tables` wrote."""

    def __init__(self, folder: Path) -> None:
        self.nodes = {label: Nodes(folder, label) for label in NODE_COLUMNS}
        self.edges = {kind: Edges(folder, kind) for kind in EDGE_TYPES}

    def around(self, label: str, row: int, kind: str) -> Gathered:
        """The edges of a type at a node, whichever way they point: those it is the source of first."""
        return self.gathered(label, np.array([row]), kind)

    def gathered(self, label: str, rows: Ints, kind: str, minimum: float | None = None) -> Gathered:
        """`around` of several nodes, one after the other, in a few array operations; a row of -1 has no edges.

        With `minimum`, only the edges that weigh as much or more.
        """
        found = []
        for side, end in zip(("out", "in"), EDGE_ENDS[kind], strict=True):
            if end == label:
                sides = self.edges[kind].sides
                begins, ends = sides[side, "begins"][rows], sides[side, "begins"][rows + 1]
                places, owners = expand_ranges(np.where(rows >= 0, begins, ends), ends)
                edges, others = (sides[side, part][places].astype(np.int64) for part in ("edges", "others"))
                found.append(Gathered(owners, edges, others, sides[side, "weights"][places], len(rows)))
        both = found[0]
        if len(found) == 2:
            order = np.concatenate([part.owners for part in found]).argsort(kind="stable")
            columns: Any = zip(*(part[:-1] for part in found), strict=True)
            owners, edges, others, weights = (np.concatenate(column)[order] for column in columns)
            both = Gathered(owners, edges, others, weights, len(rows))
        return both if minimum is None else both.where(both.weights >= minimum)

    def ids(self, label: str, rows: Sequence[int] | Ints) -> list[str]:
        """The ids of nodes."""
        return self.nodes[label].ids.many(np.asarray(rows, np.int64))

"""A graph as memory-mapped arrays: columns of its tables, nodes and edges, and the steps from node to node.

A file holds plain little-endian values, so that a column is written part by part and read anywhere without loading the
rest. Processes that read the same graph share its pages: the machine holds one copy of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import EDGE_COLUMNS, EDGE_ENDS, LIST_COLUMNS, NODE_COLUMNS, WEIGHT_OF
from hopbench.retrieval.support.arrays import distinct, expand_ranges
from hopbench.retrieval.support.texts import OFFSET, ROW, TextIndex, Texts, mapped

INTEGERS = frozenset({"index", "count"})
NUMBERS: Mapping[str, str] = {
    **dict.fromkeys(INTEGERS, "<i8"),
    **dict.fromkeys(WEIGHT_OF.values(), "<f8"),
}
CODE = "<i4"


class Numbers:
    """A column of numbers."""

    def __init__(self, stem: Path, name: str) -> None:
        self.values = mapped(stem.with_name(f"{stem.name}.bin"), NUMBERS[name])

    def many(self, rows: NDArray[np.int64]) -> list[Any]:
        """The values of some rows."""
        values: list[Any] = self.values[rows].tolist()
        return values


class Lists:
    """A column of lists of texts: numbers into a pool that holds each text once."""

    def __init__(self, stem: Path) -> None:
        self._ends = mapped(stem.with_name(f"{stem.name}.ends.bin"), OFFSET)
        self._codes = mapped(stem.with_name(f"{stem.name}.codes.bin"), CODE)
        self._pool = Texts(stem.with_name(f"{stem.name}.pool"))
        self._known = _TextsRead(self._pool)

    def many(self, rows: NDArray[np.int64]) -> list[Any]:
        """The lists of some rows."""
        begins, ends = np.where(rows > 0, self._ends[rows - 1], 0), self._ends[rows]
        places, _ = expand_ranges(begins, ends)
        texts = list(map(self._known.__getitem__, self._codes[places].tolist()))
        stops = np.cumsum(ends - begins).tolist()
        return [texts[begin:end] for begin, end in zip([0, *stops], stops, strict=False)]

    def with_others(self, usual: Sequence[str]) -> NDArray[np.int64]:
        """The rows whose list has a text that is not among `usual`."""
        unusual = np.array([self._pool[code] not in usual for code in range(len(self._pool))], np.bool_)
        places = np.flatnonzero(unusual[self._codes]) if len(unusual) else np.zeros(0, np.int64)
        return distinct(np.searchsorted(self._ends, places, side="right"))


class _TextsRead(dict[int, str]):
    """The texts of a column by their rows, each read once."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def __missing__(self, row: int) -> str:
        text = self[row] = self._texts[row]
        return text


Column = Numbers | Texts | Lists


def open_column(folder: Path, table: str, name: str) -> Column:
    """A column of a table in a graph's folder."""
    stem = folder / f"{table}.{name}"
    if name in NUMBERS:
        return Numbers(stem, name)
    return Lists(stem) if name in LIST_COLUMNS else Texts(stem)


class Nodes(TextIndex):
    """The nodes of a label by row, found by their ids; `columns` are those of the schema."""

    def __init__(self, folder: Path, label: str) -> None:
        self.columns: dict[str, Column] = {name: open_column(folder, label, name) for name in NODE_COLUMNS[label]}
        ids = self.columns["id"]
        if not isinstance(ids, Texts):
            raise TypeError(f"ids of {label} are texts")
        super().__init__(ids, folder / label)
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)


Ints = NDArray[np.int64]
OUT, IN = "out", "in"


class Side(NamedTuple):
    """The edges at each node as source (`OUT`) or as target (`IN`): those of row i are `edges[begins[i]:begins[i+1]]`.

    `others` are the rows of their far ends, `weights` their weights, in the same order.
    """

    begins: Ints
    edges: NDArray[np.int32]
    others: NDArray[np.int32]
    weights: NDArray[np.float64]

    def at(self, row: int) -> slice:
        """Where the edges of a node stand."""
        return slice(int(self.begins[row]), int(self.begins[row + 1]))


class Edges:
    """The edges of a type; `columns` are those of the schema beside the ends."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.source = mapped(folder / f"{kind}.source.bin", ROW)
        self.target = mapped(folder / f"{kind}.target.bin", ROW)
        self.columns: dict[str, Column] = {
            name: open_column(folder, kind, name) for name in EDGE_COLUMNS[kind] if name not in ("source", "target")
        }
        self._sides = {name: _side(folder, kind, name) for name in (OUT, IN)}

    def __len__(self) -> int:
        return len(self.source)

    def side(self, name: str) -> Side:
        """The edges by source or by target."""
        return self._sides[name]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights of all edges, in the order of the table."""
        (column,) = (one for name, one in self.columns.items() if name in WEIGHT_OF.values())
        if not isinstance(column, Numbers):
            raise TypeError("weights are numbers")
        return column.values


def _side(folder: Path, kind: str, name: str) -> Side:
    stem = f"{kind}.{name}"
    return Side(
        mapped(folder / f"{stem}.begins.bin", OFFSET),
        mapped(folder / f"{stem}.edges.bin", ROW),
        mapped(folder / f"{stem}.others.bin", ROW),
        mapped(folder / f"{stem}.weights.bin", "<f8"),
    )


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

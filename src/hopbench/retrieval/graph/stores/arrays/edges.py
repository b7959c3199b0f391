"""Edges of a type: rows of both ends, and the edges at each node from either side, all memory-mapped."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import EDGE_COLUMNS, WEIGHT_OF
from hopbench.retrieval.graph.stores.arrays.columns import Column, Numbers, open_column
from hopbench.retrieval.support.text_columns import OFFSET, mapped
from hopbench.retrieval.support.text_index import ROW

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


def write_sides(folder: Path, kind: str, sources: int, targets: int) -> None:
    """Write the edges by source and by target of a type whose table is written; far ends ascend within a node."""
    source, target = (mapped(folder / f"{kind}.{end}.bin", ROW) for end in ("source", "target"))
    weight = WEIGHT_OF.get(kind)
    weights = mapped(folder / f"{kind}.{weight}.bin", "<f8") if weight else np.zeros(len(source))
    for name, near, far, count in ((OUT, source, target, sources), (IN, target, source, targets)):
        order = np.lexsort((far, near))
        begins = np.searchsorted(near, np.arange(count + 1), sorter=order)
        stem = f"{kind}.{name}"
        for part, values in (
            ("begins", begins.astype(OFFSET)),
            ("edges", order.astype(ROW)),
            ("others", far[order]),
            ("weights", weights[order]),
        ):
            (folder / f"{stem}.{part}.bin").write_bytes(values.tobytes())

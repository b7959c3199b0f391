"""A graph as memory-mapped arrays: how they are written, their columns, nodes and edges, and steps from node to node.

A file holds plain little-endian values, so that a column is written part by part and read anywhere without loading the
rest. Processes that read the same graph share its pages: the machine holds one copy of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import (
    CHUNK,
    DOCUMENT_EDGES,
    EDGE_COLUMNS,
    EDGE_ENDS,
    EDGE_TYPES,
    LIST_COLUMNS,
    NODE_COLUMNS,
    WEIGHT_OF,
    Tables,
    full_parts,
)
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.arrays import expand_ranges
from hopbench.retrieval.support.texts import OFFSET, ROW, TextIndex, Texts, TextsWriter, mapped, write_index

if TYPE_CHECKING:
    import pandas as pd


WEIGHT = "<f8"
VECTORS = ".vectors.npy"
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


def _opened(folder: Path, table: str, names: Sequence[str]) -> dict[str, Column]:
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
        self.columns = _opened(folder, label, NODE_COLUMNS[label])
        super().__init__(self.ids, folder / label)

    def __len__(self) -> int:
        return len(self.ids)


class Edges:
    """The edges of a type: rows of their ends, weights, and the `columns` of the schema beside the ends.

    A side is "out" or "in": the edges of the node at row i as their source or as their target are
    `edges[begins[i]:begins[i+1]]`, with `others`, the rows of their far ends, and their weights in the same order.
    A graph without edges of documents has no files of them.
    """

    def __init__(self, folder: Path, kind: str, nodes: Mapping[str, Nodes]) -> None:
        if kind in DOCUMENT_EDGES and not (folder / f"{kind}.source.bin").exists():
            nothing = np.zeros(0, ROW)
            self.source, self.target, self.weights = nothing, nothing, np.zeros(0)
            self.columns: Mapping[str, Column] = dict.fromkeys(EDGE_TYPES[kind].columns, Numbers(nothing))
            self.sides = {
                (side, part): np.zeros(len(nodes[end]) + 1 if part == "begins" else 0, OFFSET)
                for side, end in zip(("out", "in"), EDGE_ENDS[kind], strict=True)
                for part in ("begins", "edges", "others", "weights")
            }
            return
        self.source, self.target = (mapped(folder / f"{kind}.{end}.bin", ROW) for end in ("source", "target"))
        self.columns = _opened(folder, kind, EDGE_TYPES[kind].columns)
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
        self.edges = {kind: Edges(folder, kind, self.nodes) for kind in EDGE_TYPES}

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
            written = 0
            for _, part in full_parts(tables, {kind: columns}):
                written += len(part)
                source, target = (near.rows(part[end].tolist()) for near, end in zip(nodes, columns[:2], strict=True))
                known = (source >= 0) & (target >= 0)  # an edge to a node that is not there is left out
                add(part.assign(source=source, target=target)[known])
        if written or kind not in DOCUMENT_EDGES:
            _write_sides(folder, kind, nodes)
            continue
        for file in folder.glob(f"{kind}.*"):
            file.unlink()
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
    weights = mapped(folder / f"{kind}.{weight}.bin", WEIGHT) if weight else np.ones(len(ends[0]))
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

"""Writes tables as arrays, table by table: a killed write goes on with the first table that is not whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray
from pydantic import TypeAdapter

from hopbench.retrieval.graph.schema import (
    CHUNK,
    EDGE_COLUMNS,
    EDGE_ENDS,
    LIST_COLUMNS,
    NODE_COLUMNS,
    WEIGHT_OF,
    Tables,
)
from hopbench.retrieval.graph.stores.arrays.graph import CODE, IN, NUMBERS, OUT, Nodes
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.texts import OFFSET, ROW, Texts, TextsWriter, mapped, write_index

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


JOURNAL = "written.jsonl"  # the key, and a line for each table that is whole: the SHA-256 of its files

KEY, ENTRY = TypeAdapter(str), TypeAdapter(tuple[str, dict[str, str]])


class _Kept(NamedTuple):
    """The key of a write, and the tables that it finished."""

    key: str
    tables: dict[str, dict[str, str]]


class UnfinishedGraph:
    """The folder of a graph with this `key`; empty unless a write of the same key began it. "" is never gone on with.

    A table of which a file is not as it was written is written again, as is one that was not whole.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        self.tables: dict[str, Mapping[str, str]] = {}
        kept = _kept(folder / JOURNAL)
        if key and kept.key == key:
            self.tables = {table: sums for table, sums in kept.tables.items() if _intact(folder, table, sums)}
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for file in self._others():
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        (folder / JOURNAL).write_text(f"{json.dumps(key)}\n", encoding="utf-8")
        for table in self.tables:
            self._note(table)

    def once(self, table: str, write: Callable[[], None]) -> None:
        """Have `write` write a table's files, unless they are there."""
        if table in self.tables:
            return
        write()
        self.tables[table] = {file.name: file_sum(file) for file in self._others()}
        self._note(table)

    def _note(self, table: str) -> None:
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(f"{json.dumps([table, self.tables[table]])}\n")

    def finished(self) -> dict[str, str]:
        """The SHA-256 of each file by its name; nothing else is in the folder then."""
        (self.folder / JOURNAL).unlink()
        return {name: digest for sums in self.tables.values() for name, digest in sorted(sums.items())}

    def _others(self) -> list[Path]:
        """The files of no table."""
        known = {JOURNAL, *(name for sums in self.tables.values() for name in sums)}
        return [file for file in sorted(self.folder.iterdir()) if file.name not in known]


def _kept(journal: Path) -> _Kept:
    """What a journal says until its first line that does not read: the last, if the process was killed at it."""
    kept = _Kept("", {})
    with suppress(OSError, ValueError):
        first, *lines = journal.read_text(encoding="utf-8").splitlines()
        kept = _Kept(KEY.validate_json(first), {})
        for line in lines:
            table, sums = ENTRY.validate_json(line)
            kept.tables[table] = sums
    return kept


def _intact(folder: Path, table: str, sums: Mapping[str, str]) -> bool:
    try:
        same = all(file_sum(folder / name) == digest for name, digest in sums.items())
    except OSError:
        same = False
    if not same:
        notice(f"{folder}: a file of {table} does not read as it was written: that table is written again")
    return same


class ColumnWriter:
    """Writes the columns of a table part by part; a context whose end closes the files."""

    def __init__(self, folder: Path, table: str, names: Sequence[str]) -> None:
        self._folder, self._table, self._names = folder, table, names
        self._files: dict[str, IO[bytes]] = {}
        self._texts: dict[str, TextsWriter] = {}
        self._sizes: dict[str, int] = {}
        self._pools: dict[str, dict[str, int]] = {name: {} for name in names if name in LIST_COLUMNS}
        self._stack = ExitStack()
        self.rows = 0

    def __enter__(self) -> ColumnWriter:
        """Create all files, so that a table without rows has its columns too."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in self._names:
            if name in NUMBERS:
                self._open(name)
            elif name in LIST_COLUMNS:
                self._open(f"{name}.ends")
                self._open(f"{name}.codes")
                self._open_texts(f"{name}.pool")
            else:
                self._open_texts(name)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows, given as a sequence for each column."""
        for name in self._names:
            values = columns[name]
            if name in NUMBERS:
                self._files[name].write(np.asarray(values, NUMBERS[name]).tobytes())
            elif name in LIST_COLUMNS:
                self._add_lists(name, values)
            else:
                self._texts[name].add(values)
        self.rows += len(next(iter(columns.values()), ()))

    def _add_lists(self, name: str, values: Sequence[object]) -> None:
        pool = self._pools[name]
        before = len(pool)
        codes: list[int] = []
        sizes: list[int] = []
        for value in values:
            texts = value if isinstance(value, list) else ()
            sizes.append(len(texts))
            codes.extend(pool.setdefault(text, len(pool)) for text in texts)
        ends = self._sizes.get(name, 0) + np.cumsum(sizes, dtype=OFFSET)
        self._sizes[name] = int(ends[-1]) if len(ends) else self._sizes.get(name, 0)
        self._files[f"{name}.ends"].write(ends.tobytes())
        self._files[f"{name}.codes"].write(np.array(codes, CODE).tobytes())
        self._texts[f"{name}.pool"].add(_from(pool, before))

    def _open_texts(self, name: str) -> None:
        self._texts[name] = self._stack.enter_context(TextsWriter(self._folder / f"{self._table}.{name}"))

    def _open(self, name: str) -> None:
        file = self._folder / f"{self._table}.{name}.bin"
        self._files[name] = self._stack.enter_context(file.open("wb"))


def _from(pool: dict[str, int], number: int) -> list[str]:
    """The pool's texts from a number on, in the order of their numbers."""
    return list(islice(reversed(pool), len(pool) - number))[::-1]


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

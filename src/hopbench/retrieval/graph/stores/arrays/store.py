"""A graph as memory-mapped arrays in a folder: for corpora whose graph the embedded engine would not fit into memory.

It answers the queries of `cypher` alone, each by a function, and no other text: nothing parses Cypher here. Strategies,
`explain` and `graph info` send no others. Nothing of it is loaded: a process holds the pages that it reads, and shares
them with all processes that read the same graph.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.graph.schema import CHUNK, Tables
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph
from hopbench.retrieval.graph.stores.arrays.queries import EXPORTS, QUERIES, Columns, table_parts
from hopbench.retrieval.graph.stores.arrays.write import VECTORS, UnfinishedGraph, write_tables
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.support.arrays import mapped_array
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import DamagedGraphError, InputError, StoreError, exhausted
from hopbench.retrieval.types import Chunk

FORMAT = 2
SUFFIX = ".arrays"
ABOUT = "graph.json"  # written last: a folder without it is no graph


class EdgeRows(NamedTuple):
    """Edges by the rows of their ends, with their weights, (e,) each."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: NDArray[np.float64]


class ArrayStore:
    """A graph in the folder `folder/NAMESPACE.arrays`, mapped on first use."""

    engine = "arrays"

    def __init__(self, folder: Path, namespace: str) -> None:
        self.namespace = namespace
        self.path = folder / f"{namespace}{SUFFIX}"
        self._graph: ArrayGraph | None = None

    def read(self, query: str, **parameters: object) -> list[Record]:
        """See `GraphStore.read`; StoreError for a query that is none of `cypher`'s."""
        if query in EXPORTS:
            return [record for part in self.read_parts(query) for record in part]
        answer = QUERIES.get(query)
        if answer is None:
            first = " ".join(query.split())[:60]
            raise StoreError(
                f"--store arrays answers HopBench's own queries alone, not {first!r}: it does not parse Cypher. "
                "For other queries use --store kglite or neo4j (hopbench graph copy)"
            )
        return list(answer(self.graph, **parameters))

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`."""
        yield from EXPORTS[query](self.graph) if query in EXPORTS else (self.read(query),)

    def table_parts(self, name: str) -> Iterator[Columns]:
        """The table of a label or edge type in parts, each by columns: a record for each row takes twice as long."""
        return table_parts(self.graph, name)

    def edge_rows(self, kind: str) -> EdgeRows:
        """The edges of a type by the rows of their ends."""
        edges = self.graph.edges[kind]
        return EdgeRows(edges.source, edges.target, edges.weights)

    def node_ids(self, label: str, rows: NDArray[Any] | None = None) -> list[str]:
        """The ids of a label's nodes, or of some rows of them."""
        every = np.arange(len(self.graph.nodes[label])) if rows is None else rows
        return self.graph.ids(label, every)

    def chunk_vectors(self, chunks: Sequence[Chunk]) -> NDArray[np.float32] | None:
        """The vectors of chunks, mapped, shape (n, d); None unless the graph has them of just these, in this order."""
        try:
            nodes = self.graph.nodes[CHUNK]
        except DamagedGraphError:  # or none: whoever reads the record says so, and a build makes it anew
            return None
        file = self.path / f"{CHUNK}{VECTORS}"
        if not file.is_file() or not nodes.ids.holds(ids_of(chunks)):
            return None
        return mapped_array(file)

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """See `GraphStore.write`: beside its place and renamed. Of the vectors the chunks' are kept.

        A killed write of the same content goes on with the table at which it was.
        """
        unfinished_folder = self.path.with_name(f"{self.path.name}.partial")
        try:
            unfinished = UnfinishedGraph(unfinished_folder, _content_key(record))
            write_tables(unfinished, tables)
            sums = unfinished.finished()
            sizes = {name: (unfinished_folder / name).stat().st_size for name in sums}
            about = {"format": FORMAT, "record": dict(record), "sizes": sizes, "sums": sums}
            (unfinished_folder / ABOUT).write_text(json.dumps(about, sort_keys=True), encoding="utf-8")
            self.drop()
            unfinished_folder.rename(self.path)
        except OSError as error:
            if (lacking := exhausted(error, self.path)) is not None:
                raise lacking from error
            raise InputError(
                f"cannot write the graph {self.path}: {error}. Free space there or set HOPBENCH_HOME to another folder"
            ) from error

    def record(self) -> Mapping[str, Any] | None:
        """See `GraphStore.record`; refuses a graph with a file that is missing or cut."""
        if not self.path.exists():
            return None
        self.check()
        record: Mapping[str, Any] = self._about()["record"]
        return record

    def stamp(self) -> str | None:
        """A digest of the files' names, sizes and times of change: they are too large to be read at every run."""
        if not self.path.is_dir():
            return None
        digest = hashlib.sha256()
        for file in sorted(self.path.iterdir()):
            about = file.stat()
            digest.update(f"{file.name}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def drop(self) -> None:
        """See `GraphStore.drop`."""
        self.close()
        try:
            (self.path / ABOUT).unlink(missing_ok=True)  # first: what is left of it is then no graph
            if self.path.exists():
                shutil.rmtree(self.path)
        except OSError as error:
            raise InputError(f"cannot remove the graph {self.path}: {error.strerror}: move it away") from error

    def close(self) -> None:
        """Forget the graph; the files stay."""
        self._graph = None

    @property
    def graph(self) -> ArrayGraph:
        """The mapped graph; raises DamagedGraphError where a file is not as long as it was written."""
        if self._graph is None:
            self.check()
            self._graph = ArrayGraph(self.path)
        return self._graph

    def check(self, *, content: bool = False) -> None:
        """Raise DamagedGraphError where a file is missing or not as long as it was written.

        With `content`, also where it is not what was written: this reads all files.
        """
        about = self._about()
        for name, size in about["sizes"].items():
            file = self.path / name
            fits = file.is_file() and file.stat().st_size == size
            if not fits or (content and file_sum(file) != about["sums"].get(name)):
                raise self._damaged(f"{name} is not as it was written")

    def _about(self) -> dict[str, Any]:
        try:
            about: dict[str, Any] = json.loads((self.path / ABOUT).read_text(encoding="utf-8"))
            known = about["format"] == FORMAT
            about = {name: dict(about[name]) for name in ("record", "sizes", "sums")} if known else about
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"{ABOUT}: {type(error).__name__}: {error}") from error
        if not known:
            raise self._damaged(f"{ABOUT} has format {about['format']}, this version reads {FORMAT}")
        return about

    def _damaged(self, what: str) -> DamagedGraphError:
        return DamagedGraphError(
            f"cannot read the graph {self.path}: {what}. Build it again: hopbench graph build --force"
        )


def _content_key(record: Mapping[str, object]) -> str:
    """What two writes of the same content share; "" where the record does not say what is written."""
    key, fingerprint = record.get("build_key"), record.get("fingerprint")
    return f"{FORMAT} {key} {fingerprint}" if key and fingerprint else ""

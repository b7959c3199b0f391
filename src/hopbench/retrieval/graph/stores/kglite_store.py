"""The embedded store: kglite, one file per namespace, Cypher in this process.

The file is written under a temporary name and renamed, so a reader or a restart sees the old graph or the new one,
never a part. Processes share nothing but that file.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    EDGE_COLUMNS,
    EDGE_ENDS,
    LIST_COLUMNS,
    NODE_COLUMNS,
    SPARSE_COLUMNS,
    Tables,
)
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import DamagedGraphError, InputError, StoreError, exhausted

PART_ROWS = 100_000  # about 100 MB as Python objects
VECTOR_ROWS = 10_000  # as Python numbers a vector takes eight times its size


class KgliteStore:
    """A graph in `folder/NAMESPACE.kgl`, read into memory on first use."""

    engine = "kglite"

    def __init__(self, folder: Path, namespace: str) -> None:
        self.namespace = namespace
        self.path = folder / f"{namespace}.kgl"
        self._graph: Any = None

    def read(self, query: str, **parameters: object) -> list[Record]:
        """See `GraphStore.read`."""
        import kglite

        kglite.set_query_warning_policy("silent")  # a graph without RELATED_TO edges is legitimate
        try:
            rows: list[Record] = (
                self._open().cypher(query, params={**parameters, "namespace": self.namespace}).to_list()
            )
        except kglite.KgError as error:
            raise StoreError(f"kglite refused a query on {self.path.name}: {error}") from error
        return rows

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`: by SKIP and LIMIT, since rows always come in the same order."""
        if len(cypher.PARTS[query]) > 1:  # a record for each kind
            yield self.read(query)
            return
        begin, rows = 0, self.read(f"{query} SKIP 0 LIMIT {PART_ROWS}")
        yield rows
        while len(rows) == PART_ROWS:
            begin += PART_ROWS
            rows = self.read(f"{query} SKIP {begin} LIMIT {PART_ROWS}")
            yield rows

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """See `GraphStore.write`."""
        import kglite

        graph = kglite.KnowledgeGraph()
        for label, columns in NODE_COLUMNS.items():
            for part in tables.parts(label):
                self._add_nodes(graph, label, part.reindex(columns=list(columns)))
        for kind, columns in EDGE_COLUMNS.items():
            for part in tables.parts(kind):
                self._add_edges(graph, kind, part.reindex(columns=list(columns)))
        for label, ids, vectors in tables.vector_parts():
            text = "content" if label == CHUNK else "name"
            for begin in range(0, len(ids), VECTOR_ROWS):
                block = slice(begin, begin + VECTOR_ROWS)
                graph.add_node_embeddings(label, text, dict(zip(ids[block], vectors[block].tolist(), strict=True)))
        build = pd.DataFrame([{"id": "build", "record": json.dumps(dict(record), sort_keys=True)}])
        self._add_nodes(graph, "Build", build)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._remove_half_written()
            with warnings.catch_warnings():
                # A large graph is saved in parts; users need no warning that lists of aliases load onto the heap.
                warnings.simplefilter("ignore", kglite.MappedFallbackWarning)
                graph.save(str(self.path))  # writes a sibling and renames it
        except (OSError, kglite.KgError) as error:
            if (lacking := exhausted(error, self.path)) is not None:
                raise lacking from error
            raise InputError(
                f"cannot write the graph {self.path}: {error}. Free space there or set HOPBENCH_HOME to another folder"
            ) from error
        self._graph = graph

    def _remove_half_written(self) -> None:
        """Remove the files NAME.tmp.PID.N that killed writers left behind."""
        import psutil

        for file in self.path.parent.glob(f"{self.path.name}.tmp.*"):
            process = file.name.removeprefix(f"{self.path.name}.tmp.").partition(".")[0]
            if process.isdecimal() and not psutil.pid_exists(int(process)):
                file.unlink(missing_ok=True)

    def record(self) -> Mapping[str, Any] | None:
        """See `GraphStore.record`."""
        if self._graph is None and not self.path.exists():
            return None
        rows = self.read(cypher.BUILD_RECORD)
        return json.loads(rows[0]["record"]) if rows else None

    def stamp(self) -> str | None:
        """The SHA-256 of the file."""
        return file_sum(self.path)

    def drop(self) -> None:
        """See `GraphStore.drop`."""
        self._graph = None
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot remove the graph {self.path}: {error.strerror}: move it away") from error

    def close(self) -> None:
        """Release the graph; the file stays."""
        self._graph = None

    def _open(self) -> Any:
        import kglite

        if self._graph is None:
            try:
                self._graph = kglite.load(str(self.path))
            except BaseException as error:
                if not isinstance(error, (OSError, kglite.KgError)) and type(error).__name__ != "PanicException":
                    raise  # panics of Rust are not subclasses of Exception
                raise DamagedGraphError(
                    f"cannot read the graph {self.path}: {error} Build it again: hopbench graph build --force"
                ) from error
        return self._graph

    def _add_nodes(self, graph: Any, label: str, table: pd.DataFrame) -> None:
        if len(table):
            lists = {name: "list" for name in table.columns if name in LIST_COLUMNS}
            table = table.assign(namespace=self.namespace)
            graph.add_nodes(table, label, "id", labels=["Node"], column_types=lists)

    @staticmethod
    def _add_edges(graph: Any, kind: str, table: pd.DataFrame) -> None:
        if len(table):
            source, target = EDGE_ENDS[kind]
            bare = [name for name in table.columns if name in SPARSE_COLUMNS and not any(map(_full, table[name]))]
            table = table.drop(columns=bare)
            lists = {name: "list" for name in table.columns if name in LIST_COLUMNS}
            graph.add_relationships(table, kind, source, "source", target, "target", column_types=lists)


def _full(value: object) -> bool:
    return isinstance(value, list) and bool(value)

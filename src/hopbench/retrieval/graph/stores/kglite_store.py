"""The embedded store: kglite, one file per namespace, Cypher in this process.

The file is written under a temporary name and renamed, so a reader or a restart sees the old graph or the new one,
never a part. Processes share nothing but that file.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain
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
    full_parts,
    vector_rows,
)
from hopbench.retrieval.graph.stores.base import GraphStore, Record, damaged, remove, writing
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import StoreError

PART_ROWS = 100_000  # about 100 MB as Python objects
VECTOR_ROWS = 10_000  # as Python numbers a vector takes eight times its size


class KgliteStore(GraphStore):
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
        if self._graph is None:
            try:
                self._graph = kglite.load(str(self.path))
            except BaseException as error:
                if not isinstance(error, (OSError, kglite.KgError)) and type(error).__name__ != "PanicException":
                    raise  # panics of Rust are not subclasses of Exception
                raise damaged(self.path, error) from error
        try:
            rows: list[Record] = self._graph.cypher(query, params={**parameters, "namespace": self.namespace}).to_list()
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
        import psutil

        graph = kglite.KnowledgeGraph()
        build = pd.DataFrame([{"id": "build", "record": json.dumps(dict(record), sort_keys=True)}])
        for label, part in chain(full_parts(tables, NODE_COLUMNS), [("Build", build)]):
            if len(part):
                lists = dict.fromkeys(LIST_COLUMNS.intersection(part.columns), "list")
                named = part.assign(namespace=self.namespace)
                graph.add_nodes(named, label, "id", labels=["Node"], column_types=lists)
        for kind, part in full_parts(tables, EDGE_COLUMNS):
            bare = [
                name
                for name in SPARSE_COLUMNS.intersection(part.columns)
                if not any(isinstance(value, list) and value for value in part[name])
            ]
            lists = dict.fromkeys(LIST_COLUMNS.intersection(part.columns).difference(bare), "list")
            if len(part):
                source, target = EDGE_ENDS[kind]
                edges = part.drop(columns=bare)
                graph.add_relationships(edges, kind, source, "source", target, "target", column_types=lists)
        for label, vectors in vector_rows(tables, VECTOR_ROWS):
            graph.add_node_embeddings(label, "content" if label == CHUNK else "name", vectors)
        with writing(self.path, kglite.KgError), warnings.catch_warnings():
            for file in self.path.parent.glob(f"{self.path.name}.tmp.*"):
                process = file.name.removeprefix(f"{self.path.name}.tmp.").partition(".")[0]
                if process.isdecimal() and not psutil.pid_exists(int(process)):
                    file.unlink(missing_ok=True)  # NAME.tmp.PID.N, which a killed writer left behind
            # A large graph is saved in parts; users need no warning that lists of aliases load onto the heap.
            warnings.simplefilter("ignore", kglite.MappedFallbackWarning)
            graph.save(str(self.path))  # writes a sibling and renames it
        self._graph = graph

    def record(self) -> Mapping[str, Any] | None:
        """See `GraphStore.record`."""
        return super().record() if self._graph is not None or self.path.exists() else None

    def stamp(self) -> str | None:
        """The SHA-256 of the file."""
        return file_sum(self.path)

    def drop(self) -> None:
        """See `GraphStore.drop`."""
        self.close()
        remove(self.path)

    def close(self) -> None:
        """Release the graph; the file stays."""
        self._graph = None

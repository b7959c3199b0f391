"""The graph in a Neo4j server: many namespaces in one database, read by the same Cypher as the embedded store.

Writes are idempotent batches of `BATCH_ROWS`; a graph is complete once its Build node exists, which is written last.
Sessions are short, one per call; the pool is shared and may be used by several threads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import finalize

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.cypher import neo4j as texts
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, NODE_COLUMNS, SPARSE_COLUMNS, Tables, full_parts, vector_rows
from hopbench.retrieval.graph.stores.base import GraphStore, Record, joined
from hopbench.retrieval.graph.stores.neo4j_connection import Connection, committed, explained, stopping

if TYPE_CHECKING:
    import pandas as pd
    from neo4j import Driver, ManagedTransaction, Session
    from neo4j.api import BookmarkManager

BATCH_ROWS = 10_000
VECTOR_ROWS = 2_000
DELETE_ROWS = 5_000
PAGE_NODES = 20_000  # with about 200,000 edges
INDEX_SECONDS = 300
REPLAN_ROWS = 10_000  # below this any plan is quick, and replanning all queries costs seconds


class Neo4jStore(GraphStore):
    """A namespace of a Neo4j database. Connects on first use, and fails at once if there is no server."""

    engine = "neo4j"

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.namespace = namespace
        self.connection = connection

    @cached_property
    def driver(self) -> Driver:
        """The driver, verified to reach the server; shared by all calls."""
        driver = self.connection.driver()
        try:
            with explained(self.connection):
                driver.verify_connectivity()
        except BaseException:
            driver.close()
            raise
        self._closing = finalize(self, driver.close)  # at the latest when the program ends
        return driver

    @cached_property
    def _bookmarks(self) -> BookmarkManager:
        from neo4j import GraphDatabase

        return GraphDatabase.bookmark_manager()

    def read(self, query: str, **parameters: object) -> list[Record]:
        """See `GraphStore.read`; a query over a large graph takes a round trip per `PAGE_NODES` nodes."""
        if query in cypher.PARTS:
            return joined(self.read_parts(query, **parameters))
        return self._transaction("execute_read", query, parameters)

    def read_parts(self, query: str, **parameters: object) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`: by ranges of ids, which need little server memory and can be retried."""
        parts = cypher.PARTS.get(query, ())
        ends = {part.label: self._page_ends(part.label) for part in parts}
        if not any(len(pages) > 1 for pages in ends.values()):
            yield self._transaction("execute_read", query, parameters)
            return
        for part in parts:
            for after, until in pairwise(("", *ends[part.label])):
                yield self._transaction("execute_read", part.page(), {**parameters, "after": after, "until": until})

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        """The rows of each node label according to the build record, which says whether reading needs pages."""
        return (self.record() or {}).get("nodes") or {}

    def _page_ends(self, label: str) -> Sequence[str]:
        if self._counts.get(label, math.inf) <= PAGE_NODES:
            return ()
        (row,) = self.read(texts.page_ends(label), nodes=PAGE_NODES)
        ends: Sequence[str] = row["ends"]
        return ends

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """See `GraphStore.write`. An interrupted write of the same build is resumed; other content is replaced."""
        key = str(record.get("build_key", ""))
        left = self.read(texts.INTERRUPTED)
        if not key or not left or left[0]["key"] != key:
            self.drop()
        self.__dict__.pop("_counts", None)
        there = {str(row["name"]) for row in self.read(texts.SCHEMA_NAMES)}
        for name, statement in texts.schema_statements().items():
            if name not in there:  # each schema change is a transaction of its own
                self._run(statement)
        self._run(texts.BEGIN, key=key)
        self._written = 0
        for label, part in full_parts(tables, NODE_COLUMNS):
            self._batches(texts.write_nodes(label), part, ("id",))
        for label, vectors in vector_rows(tables, VECTOR_ROWS):
            self._run(texts.write_vectors(label), rows=[{"id": id_, "vector": one} for id_, one in vectors.items()])
        for kind, part in full_parts(tables, EDGE_COLUMNS):
            parallel = part.groupby(["source", "target"], sort=False).cumcount()
            self._batches(texts.write_edges(kind), part[parallel == 0], ("source", "target"))
            more = part.assign(parallel=parallel)[parallel > 0]
            self._batches(texts.write_edges(kind, parallel=True), more, ("source", "target", "parallel"))
        self._run(texts.FINISH, record=json.dumps(dict(record), sort_keys=True))
        self._run(texts.AWAIT_INDEXES, seconds=INDEX_SECONDS)
        if self._written >= REPLAN_ROWS:
            self._run(texts.REPLAN, seconds=INDEX_SECONDS)

    def stamp(self) -> str:
        """A digest of namespace and bookmark (the database's identity and its last committed transaction).

        So changing another graph in the database changes it as well.
        """
        with explained(self.connection), self._session() as session:
            session.execute_read(lambda tx: tx.run("RETURN 1").consume())
            bookmarks = sorted(session.last_bookmarks().raw_values)
        return hashlib.sha256("\n".join((self.namespace, *bookmarks)).encode()).hexdigest()

    def drop(self) -> None:
        """See `GraphStore.drop`. The record goes first, so that an interrupted drop leaves no graph."""
        self._run(texts.UNFINISH)
        while self._run(texts.DELETE_SOME, limit=DELETE_ROWS)[0]["deleted"]:
            pass

    def reference(self) -> None:
        """Run a fixed computation in one round trip, as a reference for the server's speed."""
        self.read(texts.REFERENCE)

    def close(self) -> None:
        """Close the pool; the next call opens another."""
        if self.__dict__.pop("driver", None) is not None:
            self._closing()

    def _batches(self, query: str, table: pd.DataFrame, keys: Sequence[str]) -> None:
        """Write rows as {key columns…, properties}; missing values are left out, as Neo4j does."""
        names = [str(name) for name in table.columns]
        for begin in range(0, len(table), BATCH_ROWS):
            columns = (table[name].iloc[begin : begin + BATCH_ROWS].tolist() for name in names)
            rows = []
            for row in map(partial(zip, names), zip(*columns, strict=True)):
                values = dict(row)
                own = {key: values.pop(key) for key in keys}
                rows.append({**own, "properties": {k: v for k, v in values.items() if not _missing(k, v)}})
            self._run(query, rows=rows)
        self._written += len(table)

    def _run(self, query: str, **parameters: object) -> list[Record]:
        return self._transaction("execute_write", query, parameters)

    def _transaction(self, method: str, query: str, parameters: Mapping[str, object]) -> list[Record]:
        from neo4j import unit_of_work

        bound = {**parameters, "namespace": self.namespace}

        def work(tx: ManagedTransaction) -> list[Record]:
            return [dict(row) for row in tx.run(query, bound)]

        limited = unit_of_work(timeout=self.connection.timeout)(stopping(work, self.connection))

        def once() -> list[Record]:
            with self._session() as session:
                rows: list[Record] = getattr(session, method)(limited)
            return rows

        with explained(self.connection):
            return committed(once)

    def _session(self) -> Session:
        # Fetch all records of a query at once: the default of 1,000 would cost a round trip per thousand. The bookmark
        # manager lets later sessions see the writes of earlier ones, whichever member of a cluster answers.
        return self.driver.session(database=self.connection.database, fetch_size=-1, bookmark_manager=self._bookmarks)


def _missing(name: str, value: object) -> bool:
    nan = isinstance(value, float) and math.isnan(value)
    return value is None or nan or (name in SPARSE_COLUMNS and not value)

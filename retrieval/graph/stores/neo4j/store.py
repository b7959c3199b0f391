"""The graph in a Neo4j server: many namespaces in one database, read by the same Cypher as the embedded store's.

Writing is in batches of `BATCH_ROWS`, each of which may be repeated; a graph counts as written when its Build node
stands, which is the last thing written. Sessions are short, one per call; the pool is shared and may be used by
several threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import pandas as pd

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.cypher import neo4j as texts
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, NODE_COLUMNS, SPARSE_COLUMNS, Tables
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.graph.stores.neo4j.connection import Connection, explained, explanation

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction, Session

BATCH_ROWS = 10_000
VECTOR_ROWS = 2_000
DELETE_ROWS = 5_000
INDEX_SECONDS = 300
REPLAN_ROWS = 10_000  # any plan is quick for fewer, and planning all queries again costs seconds
MEMORY_TRIES = 3
COMMIT_TRIES = 5
Row = Mapping[str, Any]
T = TypeVar("T")


class Neo4jStore:
    """A namespace of a Neo4j database. Connects on first use and then fails at once where there is no server."""

    engine = "neo4j"

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.namespace = namespace
        self.connection = connection

    @cached_property
    def driver(self) -> Driver:
        """The driver, proven to reach the server; shared by all calls."""
        driver = self.connection.driver()
        try:
            with explained(self.connection):
                driver.verify_connectivity()
        except BaseException:
            driver.close()
            raise
        self._closing = finalize(self, driver.close)  # closes it at the latest when the program ends
        return driver

    def read(self, query: str, **parameters: object) -> list[Record]:
        """See `GraphStore.read`."""
        bound = {**parameters, "namespace": self.namespace}
        return self._transaction("execute_read", lambda tx: [dict(row) for row in tx.run(query, bound)])

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`: in one, since the server promises no order by which to count off."""
        yield self.read(query)

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """See `GraphStore.write`. An interrupted write of the same build is completed, other content replaced."""
        key = str(record.get("build_key", ""))
        left = self.read(texts.INTERRUPTED)
        if not key or not left or left[0]["key"] != key:
            self.drop()
        self._prepare()
        self._run(texts.BEGIN, key=key)
        self._written = 0
        for label, columns in NODE_COLUMNS.items():
            for part in tables.parts(label):
                rows = _properties(part.reindex(columns=list(columns)), ("id",))
                self._batches(texts.write_nodes(label), rows, BATCH_ROWS)
        for label, ids, vectors in tables.vector_parts():
            pairs = [{"id": node, "vector": vector} for node, vector in zip(ids, vectors.tolist(), strict=True)]
            self._batches(texts.write_vectors(label), pairs, VECTOR_ROWS)
        for kind, columns in EDGE_COLUMNS.items():
            for part in tables.parts(kind):
                self._write_edges(kind, part.reindex(columns=list(columns)))
        self._run(texts.FINISH, record=json.dumps(dict(record), sort_keys=True))
        self._run(texts.AWAIT_INDEXES, seconds=INDEX_SECONDS)
        if self._written >= REPLAN_ROWS:
            self._run(texts.REPLAN, seconds=INDEX_SECONDS)

    def record(self) -> Mapping[str, Any] | None:
        """See `GraphStore.record`."""
        rows = self.read(cypher.BUILD_RECORD)
        return json.loads(rows[0]["record"]) if rows else None

    def stamp(self) -> None:
        """None: a server has no cheap way to detect changes."""

    def drop(self) -> None:
        """See `GraphStore.drop`. The record goes first, so that the rest of an interrupted drop is no graph."""
        self._run(texts.UNFINISH)
        while self._run(texts.DELETE_SOME, limit=DELETE_ROWS)[0]["deleted"]:
            pass

    def reference(self) -> None:
        """One round trip of a fixed computation by the driver alone: a reference for the server's speed."""
        from neo4j import RoutingControl

        with explained(self.connection):
            self.driver.execute_query(texts.REFERENCE, routing_=RoutingControl.READ, database_=self.connection.database)

    def close(self) -> None:
        """Close the pool; the next call opens another."""
        if self.__dict__.pop("driver", None) is not None:
            self._closing()

    def _prepare(self) -> None:
        """Constraints and indexes that are not there yet; a schema change is a transaction of its own."""
        there = {str(row["name"]) for row in self.read(texts.SCHEMA_NAMES)}
        for name, statement in texts.schema_statements().items():
            if name not in there:
                self._run(statement)

    def _write_edges(self, kind: str, table: pd.DataFrame) -> None:
        ends = ("source", "target")
        table = table.assign(parallel=table.groupby(list(ends), sort=False).cumcount())
        first, more = table[table["parallel"] == 0].drop(columns="parallel"), table[table["parallel"] > 0]
        self._batches(texts.write_edges(kind), _properties(first, ends), BATCH_ROWS)
        self._batches(texts.write_edges(kind, parallel=True), _properties(more, (*ends, "parallel")), BATCH_ROWS)

    def _batches(self, query: str, rows: Sequence[Row], size: int) -> None:
        for begin in range(0, len(rows), size):
            self._run(query, rows=rows[begin : begin + size])
        self._written += len(rows)

    def _run(self, query: str, **parameters: object) -> list[Row]:
        bound = {**parameters, "namespace": self.namespace}
        return self._transaction("execute_write", lambda tx: [dict(row) for row in tx.run(query, bound)])

    def _transaction(self, method: str, work: Callable[[ManagedTransaction], T]) -> T:
        from neo4j import unit_of_work

        limited = unit_of_work(timeout=self.connection.timeout)(_stopping(work, self.connection))

        def once() -> T:
            with self._session() as session:
                result: T = getattr(session, method)(limited)
            return result

        with explained(self.connection):
            return _committed(once)

    def _session(self) -> Session:
        # All records of a query at once: the default of 1,000 would cost a round trip for each thousand.
        return self.driver.session(database=self.connection.database, fetch_size=-1)


def _committed(transaction: Callable[[], T]) -> T:
    """`transaction`, again where the connection broke while it was committed.

    The driver does not repeat what may have been done already; each of ours may be repeated.
    """
    from neo4j.exceptions import IncompleteCommit

    for _ in range(COMMIT_TRIES - 1):
        with suppress(IncompleteCommit):
            return transaction()
    return transaction()


def _stopping(work: Callable[[ManagedTransaction], T], connection: Connection) -> Callable[[ManagedTransaction], T]:
    """`work` that gives up after `MEMORY_TRIES`: the driver would repeat what needs too much memory for a minute."""
    from neo4j.exceptions import TransientError

    tries = 0

    def once(tx: ManagedTransaction) -> T:
        nonlocal tries
        try:
            return work(tx)
        except TransientError as error:
            tries += "OutOfMemory" in str(error.code)
            if tries == MEMORY_TRIES:
                raise explanation(connection, error) from error
            raise

    return once


def _properties(table: pd.DataFrame, keys: Sequence[str]) -> list[Row]:
    """Rows of {key columns…, properties}; a missing value is left out, as Neo4j does."""
    names = [name for name in table.columns if name not in keys]
    return list(_rows(table, keys, names))


def _rows(table: pd.DataFrame, keys: Sequence[str], names: Sequence[str]) -> Iterator[Row]:
    values = zip(*(table[name].tolist() for name in [*keys, *names]), strict=True)
    for row in values:
        properties = dict(zip(names, row[len(keys) :], strict=True))
        yield {
            **dict(zip(keys, row, strict=False)),
            "properties": {name: value for name, value in properties.items() if not _missing(name, value)},
        }


def _missing(name: str, value: object) -> bool:
    nan = isinstance(value, float) and value != value  # noqa: PLR0124 (NaN is a missing value)
    return value is None or nan or (name in SPARSE_COLUMNS and not value)

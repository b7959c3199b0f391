"""Every graph in the home's files, and in the Neo4j server where one is configured."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.stores import STORES
from hopbench.retrieval.graph.stores.arrays.store import SUFFIX as ARRAYS
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.support.errors import HopBenchError, InputError, UnknownNameError

KGL = ".kgl"


@dataclass(frozen=True)
class StoredGraph:
    """A graph in a store. `size` is in bytes (unknown for a server), `built` in UTC; what is not known is None.

    `problem` says why a graph cannot be read.
    """

    store: str
    namespace: str
    dataset: str
    extractor: str = ""
    embedder: str = ""
    build_key: str = ""
    fingerprint: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    size: int | None = None
    built: str | None = None
    problem: str = ""


def graphs(home: Home, store: str | None = None) -> tuple[list[StoredGraph], list[str]]:
    """The graphs of one store or of all, by data set and date; and the problems of stores that could not be queried.

    Neo4j is queried only where it is configured. If it was requested by name and does not answer, that is an error.
    """
    if store is not None and store not in STORES:
        raise UnknownNameError("store", store, STORES)
    found, notes = [], []
    if store in (None, "kglite"):
        found += list(_files(home.graphs, KgliteStore, KGL))
    if store in (None, "arrays"):
        found += list(_files(home.graphs, ArrayStore, ARRAYS))
    if store in (None, "neo4j"):
        try:
            found += list(_served(Connection.resolve(os.environ, home.neo4j_env)))
        except InputError:
            if store is not None or os.environ.get("NEO4J_URI"):
                raise
        except HopBenchError as error:
            if store is not None:
                raise
            notes.append(f"the graphs in Neo4j are not listed: {error}")
    return sorted(found, key=lambda one: (one.dataset, one.built or "", one.namespace)), notes


def _files(folder: Path, opened: type[KgliteStore] | type[ArrayStore], suffix: str) -> Iterator[StoredGraph]:
    for path in sorted(folder.glob(f"*{suffix}")):
        namespace = path.name.removesuffix(suffix)
        parts = path.iterdir() if opened is ArrayStore and path.is_dir() else folder.glob(f"{path.name}*")
        size = sum(part.stat().st_size for part in parts if part.is_file())
        store = opened(folder, namespace)
        try:
            record = store.record()
        except HopBenchError as error:
            yield StoredGraph(store.engine, namespace, _dataset(namespace, {}), size=size, problem=str(error))
            continue
        finally:
            store.close()
        built = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
        yield _described(store.engine, namespace, record or {}, size, built)


def _served(connection: Connection) -> Iterator[StoredGraph]:
    from hopbench.retrieval.graph.cypher.neo4j import BUILDS
    from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore

    store = Neo4jStore(connection, "")
    try:
        rows = store.read(BUILDS)
    finally:
        store.close()
    for row in rows:
        yield _described("neo4j", str(row["namespace"]), json.loads(row["record"]), None, None)


def _described(
    store: str, namespace: str, record: Mapping[str, Any], size: int | None, built: str | None
) -> StoredGraph:
    settings = record.get("settings", {})
    return StoredGraph(
        store,
        namespace,
        _dataset(namespace, record),
        str(settings.get("extractor", "")),
        str(record.get("embedder", "")),
        str(record.get("build_key", "")),
        str(record.get("fingerprint", "")),
        record.get("nodes", {}),
        record.get("edges", {}),
        size,
        record.get("built", built),
        "" if record else "it has no build record: hopbench graph build --force",
    )


def _dataset(namespace: str, record: Mapping[str, Any]) -> str:
    """The data set's name; graphs of older versions have it only as the beginning of their namespace."""
    return str(record.get("dataset") or namespace.rpartition("-")[0] or namespace)

"""Opens graph stores by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.retrieval.support.errors import UnknownNameError

if TYPE_CHECKING:
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.graph.construction.plan import GraphPlan
    from hopbench.retrieval.graph.stores.base import GraphStore

STORES = ("arrays", "kglite", "neo4j")


def check_store(engine: str, home: Home) -> None:
    """Raise UnknownNameError for an unknown store, InputError where Neo4j's server is not named anywhere."""
    if engine not in STORES:
        raise UnknownNameError("store", engine, STORES)
    if engine == "neo4j":
        from hopbench.retrieval.graph.stores.neo4j_connection import Connection

        Connection.resolve(os.environ, home.neo4j_env)


def open_store(engine: str, namespace: str, home: Home) -> GraphStore:
    """The engine's store of a namespace; connects or reads when it is first used."""
    check_store(engine, home)
    if engine == "neo4j":
        from hopbench.retrieval.graph.stores.neo4j_connection import Connection
        from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore  # loads pandas

        return Neo4jStore(Connection.resolve(os.environ, home.neo4j_env), namespace)
    if engine == "arrays":
        from hopbench.retrieval.graph.stores.arrays.store import ArrayStore

        return ArrayStore(home.graphs, namespace)
    from hopbench.retrieval.graph.stores.kglite_store import KgliteStore

    return KgliteStore(home.graphs, namespace)


def open_mapped(mapping: Path, plan: GraphPlan, home: Home) -> GraphStore:
    """A Neo4j graph that was built elsewhere, read under the names in `mapping`."""
    from hopbench.retrieval.corpus import chunk_passages
    from hopbench.retrieval.graph.stores.graph_mapping import load_mapping
    from hopbench.retrieval.graph.stores.mapped_store import MappedStore
    from hopbench.retrieval.graph.stores.neo4j_connection import Connection

    check_store("neo4j", home)
    chunks = frozenset(chunk.id for chunk in chunk_passages(plan.passages, plan.settings.max_tokens))
    server = Connection.resolve(os.environ, home.neo4j_env)
    return MappedStore(server, load_mapping(mapping), chunks=chunks, build_key=plan.build_key)

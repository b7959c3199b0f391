"""A store in an empty namespace of a Neo4j server, and the small world on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.graphs import (
    WORLD,
    built_index,
    fresh,
    neo4j_namespaces,
    plain,
    plan_of,
)

from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import Index


@pytest.fixture
def store(neo4j_connection: Connection) -> Iterator[Neo4jStore]:
    with neo4j_namespaces(neo4j_connection) as opened:
        small = opened("small")
        assert isinstance(small, Neo4jStore)
        yield small


@pytest.fixture
def world(neo4j_connection: Connection, tmp_path: Path) -> Iterator[tuple[Index, Index]]:
    """The small world on both stores: kglite's index and Neo4j's."""
    plan = plan_of(WORLD)
    local = built_index(plan, tmp_path)
    with neo4j_namespaces(neo4j_connection) as opened:
        store = opened("world")
        build_graph(plan, store, tmp_path / "staging", plain)
        yield local, fresh(local, store)

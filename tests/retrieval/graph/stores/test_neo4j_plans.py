"""How a Neo4j server enters the graph, and whole graphs that are read by pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.graphs import (
    graph_tables,
)

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.cypher import neo4j as texts
from hopbench.retrieval.graph.schema import DOCUMENT_EDGES, EDGE_COLUMNS, NODE_COLUMNS
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.graph.stores.contents import fingerprint, stored_tables
from hopbench.retrieval.graph.stores.neo4j_store import INDEX_SECONDS, Neo4jStore

pytestmark = pytest.mark.neo4j

RECORD = {"build_key": "k"}
WIDE = graph_tables(
    {"a": "text a", "b": "text b", "c": "text c", "d": "text d"},
    entities=["e:w", "e:x", "e:y", "e:z"],
    mentions=[("e:x", "a"), ("e:x", "b"), ("e:y", "c"), ("e:z", "d"), ("e:w", "d")],
    related=[("e:w", "e:x", 0.5), ("e:w", "e:z", 0.25), ("e:y", "e:z", 0.75)],
    similar=[("a", "b", 0.5), ("a", "d", 0.25), ("c", "d", 0.75)],
)


PARAMETERS: Mapping[str, Any] = {
    "ids": ["e:x"],
    "rel_types": [],
    "limit": 5,
    "min_similarity": 0.0,
    "min_strength": 0.0,
    "min_mention": 0.0,
    "min_weight": 0.25,
    "min_activation": 0.0,
    "min_threshold": 0.0,
    "tag_sim_floor": 0.15,
    "query_tags": [],
    "query_tags_count": 0,
    "visited_ids": [],
    "seeds": [],
    "pairs": [],
    "ways": [],
    "frontier": [],
    "after": "",
    "until": "e:y",
    "nodes": 2,
    "usual": [],
}
WHOLE_GRAPH = {"BUILD_RECORD", "ADJACENCY", "NAMES", "DESCRIPTIONS", "RELATIONS"}
TEXTS = {
    name: text for name, text in vars(cypher).items() if isinstance(text, str) and name[0].isupper() and " " in text
}


WHOLE = [*(TEXTS[name] for name in sorted(WHOLE_GRAPH)), *cypher.EXPORTS.values()]
PAGES = [part.page() for parts in cypher.PARTS.values() for part in parts]


def entries(store: Neo4jStore, query: str) -> list[str]:
    """Where the plan of a query enters the graph: its leaves that are no argument of what is outside."""
    with store._session() as session:
        summary = session.run(f"EXPLAIN {query}", {**PARAMETERS, "namespace": store.namespace}).consume()  # type: ignore[arg-type]
    found: list[str] = []
    left = [summary.plan]
    while left:
        step = left.pop()
        assert step is not None
        operator = step["operatorType"].partition("@")[0]
        children = step.get("children", [])
        if not children and operator not in {"Argument", "Unwind"}:
            found.append(f"{operator} {step['args'].get('Details', '')}")
        left += children
    return found


def test_every_query_is_entered_by_an_index_alone(store: Neo4jStore) -> None:
    store.write(WIDE, RECORD)

    for query in [*TEXTS.values(), *WHOLE, *PAGES, *map(texts.page_ends, NODE_COLUMNS)]:
        found = entries(store, query)
        assert found, query
        assert [entry for entry in found if not entry.startswith(("NodeIndexSeek ", "NodeUniqueIndexSeek "))] == []


def traversals_seek_ids(store: Neo4jStore) -> None:
    """Planned for a graph of real size, a traversal enters by the ids it is given, the rest by the namespace."""
    store._run(texts.REPLAN, seconds=INDEX_SECONDS)  # as writing such a graph does; these are smaller
    for name in sorted(TEXTS.keys() - WHOLE_GRAPH):
        for entry in entries(store, TEXTS[name]):
            assert re.match(r"Node(Unique)?IndexSeek .*\bid = [\w.]*id$", entry), f"{name}: {entry}"
    none_here = {
        f"DirectedRelationshipTypeScan (a)-[r:{kind}]->(b)" for kind in DOCUMENT_EDGES
    }  # the cheapest plan then
    for query in WHOLE:
        for entry in set(entries(store, query)) - none_here:
            assert re.match(r"NodeIndexSeek .*\(namespace\) WHERE namespace = \$namespace$", entry), entry
    for query in PAGES:
        for entry in entries(store, query):
            assert re.match(
                r"Node(Unique)?IndexSeek .*\(namespace, id\) WHERE namespace = \$namespace AND id > ", entry
            ), entry
    for kind in EDGE_COLUMNS:
        for entry in entries(store, texts.write_edges(kind)):
            assert re.match(r"NodeUniqueIndexSeek.* WHERE namespace = \$namespace AND id = row\.", entry), entry


def test_writing_enters_by_ids_before_the_server_knows_how_many_there_are(store: Neo4jStore) -> None:
    there = {str(row["name"]) for row in store.read(texts.SCHEMA_NAMES)}
    for name, statement in texts.schema_statements().items():
        if name not in there:
            store._run(statement)

    for query in (*map(texts.write_edges, EDGE_COLUMNS), *map(texts.write_vectors, texts.VECTOR_INDEX)):
        for entry in entries(store, query):
            assert re.match(r"NodeUniqueIndexSeek.* WHERE namespace = \$namespace AND id = row\.", entry), entry


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_whole_graph_read_by_pages_is_the_one_read_at_once(
    store: Neo4jStore, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(WIDE, RECORD)
    usual: dict[str, Any] = {"usual": ["named_together"]}
    queries = {query: usual if query == cypher.RELATIONS else {} for query in cypher.PARTS}
    once = {query: contents(store.read(query, **parameters)) for query, parameters in queries.items()}

    monkeypatch.setattr("hopbench.retrieval.graph.stores.neo4j_store.PAGE_NODES", nodes)

    assert once == {query: contents(store.read(query, **parameters)) for query, parameters in queries.items()}
    assert len(list(store.read_parts(cypher.ADJACENCY))) >= 3 * (4 // nodes)
    assert fingerprint(WIDE) == fingerprint(stored_tables(store))


def contents(records: list[Record]) -> list[tuple[str, list[str]]]:
    """Records without the order of their rows, which a server does not promise."""
    rows = []
    for record in records:
        lists = {name: value for name, value in record.items() if "kind" in record and name != "kind"}
        length = max(map(len, lists.values()), default=1)
        full = [value or [None] * length for value in lists.values()] or [[sorted(record.items(), key=str)]]
        rows.append((str(record.get("kind")), sorted(map(repr, zip(*full, strict=True)))))
    return sorted(rows)

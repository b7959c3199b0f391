"""The Cypher that only Neo4j runs: constraints and indexes, writing, and its vector search.

kglite is written through its own API and has neither schema nor vector index. Labels and types come from `schema`.
"""

from __future__ import annotations

from itertools import product

from hopbench.retrieval.graph.schema import CHUNK, DOCUMENT, EDGE_ENDS, ENTITY

NODE, BUILD, BUILDING = "Node", "Build", "Building"
UNIQUE = (DOCUMENT, CHUNK, ENTITY, BUILD, BUILDING)
VECTOR_INDEX = {CHUNK: "hopbench_chunk_vector", ENTITY: "hopbench_entity_vector"}


def schema_statements() -> dict[str, str]:
    """Constraints and indexes by name; each may be run again.

    Traversals enter by `id` (see the package), exports by `namespace`, writes by both. The vector indexes take any
    dimension, since graphs of several embedders share them (Neo4j 5.23), and are not quantised: quantised ones return
    scores that are off by 1 in 50.
    """
    statements = {}
    for label in UNIQUE:
        name = f"hopbench_{label.lower()}"
        statements[name] = (
            f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE (n.namespace, n.id) IS UNIQUE"
        )
    for label, of in product((NODE, DOCUMENT, CHUNK, ENTITY, BUILD), ("id", "namespace")):
        name = f"hopbench_{label.lower()}_{of}"
        statements[name] = f"CREATE RANGE INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.{of})"
    for label, name in VECTOR_INDEX.items():
        statements[name] = (
            f"CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.embedding) OPTIONS {{indexConfig: "
            "{`vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}"
        )
    return statements


SCHEMA_NAMES = "SHOW INDEXES YIELD name"  # a constraint's index has its name
AWAIT_INDEXES = "CALL db.awaitIndexes($seconds)"
# New statistics, so that the next queries are planned for the graph as it is now.
REPLAN = "CALL db.prepareForReplanning($seconds)"


def write_nodes(label: str) -> str:
    """`$rows` of {id, properties}; a row written twice is one node."""
    return (
        f"UNWIND $rows AS row MERGE (n:{label} {{namespace: $namespace, id: row.id}}) SET n:{NODE}, n += row.properties"
    )


def write_vectors(label: str) -> str:
    """`$rows` of {id, vector}; stored as 4-byte floats."""
    return (
        f"UNWIND $rows AS row MATCH (n:{label} {{namespace: $namespace, id: row.id}}) "
        f"USING INDEX SEEK n:{label}(namespace, id) "
        "CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)"
    )


def write_edges(kind: str, *, parallel: bool = False) -> str:
    """`$rows` of {source, target, properties}; a row written twice is one edge.

    The indexes are named: Neo4j plans a scan for each row while it knows of no node, and keeps to that plan.
    Parallel edges beyond the first of a pair (only graphs from elsewhere have any) are told apart by `row.parallel`.
    """
    source, target = EDGE_ENDS[kind]
    return (
        f"UNWIND $rows AS row MATCH (a:{source} {{namespace: $namespace, id: row.source}}), "
        f"(b:{target} {{namespace: $namespace, id: row.target}}) "
        f"USING INDEX SEEK a:{source}(namespace, id) USING INDEX SEEK b:{target}(namespace, id) "
        f"MERGE (a)-[r:{kind}{' {parallel: row.parallel}' if parallel else ''}]->(b) SET r += row.properties"
    )


# A namespace that is being written has a Building node and no Build node; the last step of writing swaps them.
INTERRUPTED = "MATCH (b:Building {namespace: $namespace, id: 'build'}) RETURN b.key AS key"
BEGIN = """
MERGE (m:Building {namespace: $namespace, id: 'build'}) SET m:Node, m.key = $key
WITH m OPTIONAL MATCH (b:Build {namespace: $namespace, id: 'build'}) DETACH DELETE b
"""
FINISH = """
MERGE (b:Build {namespace: $namespace, id: 'build'}) SET b:Node, b.record = $record
WITH b OPTIONAL MATCH (m:Building {namespace: $namespace, id: 'build'}) DETACH DELETE m
"""
BUILDS = "MATCH (b:Build) RETURN b.namespace AS namespace, b.record AS record ORDER BY namespace"
UNFINISH = "MATCH (b:Build {namespace: $namespace, id: 'build'}) DETACH DELETE b"


def page_ends(label: str) -> str:
    """The id of every `$nodes`th node of a label in the order of ids, and of the last one."""
    return (
        f"MATCH (n:{label}) USING INDEX n:{label}(namespace) WHERE n.namespace = $namespace "
        "WITH n.id AS id ORDER BY id WITH collect(id) AS ids "
        "RETURN [page IN range(1, size(ids) / $nodes) WHERE page * $nodes < size(ids) | ids[page * $nodes - 1]] "
        "+ ids[-1..] AS ends"
    )


REFERENCE = "UNWIND range(1, 2000) AS n RETURN sum(n * n % 7) AS total"
"""A fixed computation that reads no graph: how fast the server is at this moment."""
DELETE_SOME = "MATCH (n:Node {namespace: $namespace}) WITH n LIMIT $limit DETACH DELETE n RETURN count(*) AS deleted"


def nearest_nodes(label: str) -> str:
    """For each of `$vectors` its `$k` nearest nodes in any namespace; returns the ids of those in this namespace."""
    return (
        "UNWIND range(0, size($vectors) - 1) AS q CALL (q) { "
        f"CALL db.index.vector.queryNodes('{VECTOR_INDEX[label]}', $k, $vectors[q]) YIELD node "
        "WHERE node.namespace = $namespace RETURN collect(node.id) AS id } RETURN q, id"
    )

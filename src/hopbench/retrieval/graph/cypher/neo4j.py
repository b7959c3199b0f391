"""The Cypher that only Neo4j runs: constraints, indexes, writing, vector search, and reading graphs built elsewhere.

kglite is written through its own API and has neither schema nor vector index. Labels and types come from `schema`.

In a graph that HopBench did not build, several relationships may join a pair, or a node to itself, where HopBench has
one edge. `one_each` makes each hop merge the relationships of a pair before anything is compared, counted, ordered or
cut off: the merged edge has the highest strength, weight, similarity and count, all types and tags, and as `statements`
what each relationship says (`hopbench.retrieval.graph.stores.mapped_store` reads it).
"""

from __future__ import annotations

import re
from itertools import product

from hopbench.retrieval.graph.schema import CHUNK, DOCUMENT, EDGE_ENDS, ENTITY, LIST_COLUMNS

NODE, BUILD, BUILDING = "Node", "Build", "Building"
UNIQUE = (DOCUMENT, CHUNK, ENTITY, BUILD, BUILDING)
VECTOR_INDEX = {CHUNK: "hopbench_chunk_vector", ENTITY: "hopbench_entity_vector"}


def schema_statements() -> dict[str, str]:
    """Constraints and indexes by name; each may be run again.

    Traversals enter by `id` (see the package), exports by `namespace`, writes by both. The vector indexes accept any
    dimension, since graphs of several embedders share them (Neo4j 5.23), and are not quantised: quantisation changes
    scores by up to 2%.
    """
    constraints = {
        (name := f"hopbench_{label.lower()}"): f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) "
        "REQUIRE (n.namespace, n.id) IS UNIQUE"
        for label in UNIQUE
    }
    ranges = {
        (name := f"hopbench_{label.lower()}_{of}"): f"CREATE RANGE INDEX {name} IF NOT EXISTS FOR (n:{label}) "
        f"ON (n.{of})"
        for label, of in product((NODE, DOCUMENT, CHUNK, ENTITY, BUILD), ("id", "namespace"))
    }
    vectors = {
        name: f"CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.embedding) OPTIONS {{indexConfig: "
        "{`vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}"
        for label, name in VECTOR_INDEX.items()
    }
    return {**constraints, **ranges, **vectors}


SCHEMA_NAMES = "SHOW INDEXES YIELD name"  # a constraint's index has the same name
AWAIT_INDEXES = "CALL db.awaitIndexes($seconds)"
# Refreshes statistics, so that the next queries are planned for the current graph.
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

    The index hints are needed: in an empty database Neo4j plans a scan per row, and caches that plan.
    Parallel edges beyond the first of a pair (only external graphs have any) are distinguished by `row.parallel`.
    """
    source, target = EDGE_ENDS[kind]
    return (
        f"UNWIND $rows AS row MATCH (a:{source} {{namespace: $namespace, id: row.source}}), "
        f"(b:{target} {{namespace: $namespace, id: row.target}}) "
        f"USING INDEX SEEK a:{source}(namespace, id) USING INDEX SEEK b:{target}(namespace, id) "
        f"MERGE (a)-[r:{kind}{' {parallel: row.parallel}' if parallel else ''}]->(b) SET r += row.properties"
    )


# A namespace being written has a Building node and no Build node; the last step of writing swaps them.
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
    """Select the id of every `$nodes`th node of a label in the order of ids, and the last id."""
    return (
        f"MATCH (n:{label}) USING INDEX n:{label}(namespace) WHERE n.namespace = $namespace "
        "WITH n.id AS id ORDER BY id WITH collect(id) AS ids "
        "RETURN [page IN range(1, size(ids) / $nodes) WHERE page * $nodes < size(ids) | ids[page * $nodes - 1]] "
        "+ ids[-1..] AS ends"
    )


REFERENCE = "UNWIND range(1, 2000) AS n RETURN sum(n * n % 7) AS total"
"""A fixed computation that reads no graph, to measure the server's current speed."""
DELETE_SOME = "MATCH (n:Node {namespace: $namespace}) WITH n LIMIT $limit DETACH DELETE n RETURN count(*) AS deleted"


def nearest_nodes(label: str) -> str:
    """Find the `$k` nearest nodes of each of `$vectors` in any namespace; returns the ids of those in this one."""
    return (
        "UNWIND range(0, size($vectors) - 1) AS q CALL (q) { "
        f"CALL db.index.vector.queryNodes('{VECTOR_INDEX[label]}', $k, $vectors[q]) YIELD node "
        "WHERE node.namespace = $namespace RETURN collect(node.id) AS id } RETURN q, id"
    )


# A hop from a known node, by its id or from an earlier clause; queries over the whole graph have none.
_HOP = re.compile(
    r"MATCH \((?P<near>\w+)(?P<by>:\w+ \{id: (?P<id>\w+)(?:\.\w+)?\})?\)"
    r"(?P<begin><?-)\[(?P<edge>\w+):(?P<types>[A-Z_|]+)\](?P<end>->?)\((?P<far>\w+)(?P<label>:\w+)?\)\s+WHERE "
)
_COUNTED = re.compile(
    r"(?P<how>COUNT|EXISTS) \{\s*\((?P<near>\w+)\)-\[(?P<edge>\w*):(?P<types>[A-Z_|]+)\](?P<end>->?)\(\)"
    r"(?:\s+WHERE (?P<condition>[^}]*?))?\s*\}"
)


def one_each(query: str) -> str:
    """Rewrite a hop or activation query: relationships of a pair count as one edge, loops as none."""
    return "UNION ALL".join(_branch(branch) for branch in query.split("UNION ALL"))


def _branch(text: str) -> str:
    for hop in _HOP.finditer(text):
        text = re.sub(rf"\btype\({hop['edge']}\)", f"{hop['edge']}.kind", text)
        text = re.sub(rf"\bstartNode\({hop['edge']}\) = {hop['near']}\b", f"{hop['edge']}.forward", text)
    return _COUNTED.sub(_neighbours, _HOP.sub(lambda hop: _joined(hop, text), text))


def _neighbours(match: re.Match[str]) -> str:
    near, types = match["near"], match["types"]
    label = "" if "|" in types else f":{EDGE_ENDS[types][1]}"
    edge = match["edge"] and f"any_{match['edge']}"
    condition = f" AND ({match['condition']})" if match["condition"] else ""
    condition = re.sub(rf"\b{match['edge']}\.", f"{edge}.", condition) if edge else condition
    pattern = f"({near})-[{edge}:{types}]{match['end']}(other{label})"
    returned = " RETURN DISTINCT other" if match["how"] == "COUNT" else ""
    return f"{match['how']} {{ MATCH {pattern} WHERE {near} <> other{condition}{returned} }}"


def _joined(hop: re.Match[str], text: str) -> str:
    """Replace the relationship in a hop with a map of the columns that the query reads."""
    near, far, edge = hop["near"], hop["far"], hop["edge"]
    each = f"each_{edge}"
    columns = dict.fromkeys(re.findall(rf"\b{edge}\.(\w+)", text))
    values = ", ".join(f"{column}: {_value(column, each, near)}" for column in columns)
    nodes = f"{near}, {far}" if hop["by"] else far
    pattern = f"({near}{hop['by'] or ''}){hop['begin']}[{each}:{hop['types']}]{hop['end']}({far}{hop['label'] or ''})"
    returned = f"RETURN {nodes}, {{{values}}} AS {edge}" if columns else f"RETURN DISTINCT {nodes}"
    return f"CALL ({hop['id'] or near}) {{ MATCH {pattern} WHERE {near} <> {far}\n    {returned} }}\n  WITH * WHERE "


def _value(column: str, each: str, near: str) -> str:
    if column == "kind":
        return f"max(type({each}))"
    if column == "forward":
        return f"max(startNode({each}) = {near})"
    if column == "statements":
        said = ", ".join(f"{name}: {each}.{name}" for name in ("strength", "types", "description", "statements"))
        return f"collect({{{said}, forward: startNode({each}) = {near}}})"
    if column in LIST_COLUMNS:
        lists = f"collect(coalesce({each}.{column}, []))"
        return f"reduce(all = [], some IN {lists} | all + [name IN some WHERE NOT name IN all])"
    return f"max({each}.{column})"

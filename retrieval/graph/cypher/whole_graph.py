"""Queries that read a whole graph once: its content, names, wording and adjacency, as parallel lists."""

from __future__ import annotations

from hopbench.retrieval.graph.schema import EDGE_COLUMNS, EDGE_ENDS, NODE_COLUMNS


def export_nodes(label: str) -> str:
    """All nodes of a label with the columns of the schema."""
    columns = ", ".join(f"n.{name} AS {_quoted(name)}" for name in NODE_COLUMNS[label])
    return f"MATCH (n:{label}) WHERE n.namespace = $namespace RETURN {columns}"


def export_edges(kind: str) -> str:
    """All edges of a type with the ids of their ends and the columns of the schema."""
    source, target = EDGE_ENDS[kind]
    columns = ", ".join(f"r.{name} AS {_quoted(name)}" for name in EDGE_COLUMNS[kind][2:])
    return (
        f"MATCH (a:{source})-[r:{kind}]->(b:{target}) "
        f"WHERE b.namespace = $namespace AND a.namespace = b.namespace "
        f"RETURN a.id AS source, b.id AS target{', ' if columns else ''}{columns}"
    )


def _quoted(name: str) -> str:
    return f"`{name}`"


BUILD_RECORD = "MATCH (b:Build) WHERE b.namespace = $namespace RETURN b.record AS record"

# The whole adjacency as parallel lists, a record per edge type: for strategies that walk the graph as a matrix.
ADJACENCY = """
MATCH (a:Entity)-[r:MENTIONED_IN]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'MENTIONED_IN' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.weight) AS weight
UNION ALL
MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'RELATED_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.strength) AS weight
UNION ALL
MATCH (a:Chunk)-[r:SIMILAR_TO]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'SIMILAR_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.similarity) AS weight
"""

# Every name an entity goes by, and every title, as parallel lists: what questions are read against.
NAMES = """
MATCH (e:Entity) WHERE e.namespace = $namespace
RETURN 'Entity' AS kind, collect(e.id) AS id, collect(e.name) AS name, collect(e.type) AS type,
       collect(e.aliases) AS aliases
UNION ALL
MATCH (d:Document)-[:CONTAINS]->(c:Chunk) WHERE c.namespace = $namespace AND d.namespace = c.namespace
RETURN 'Document' AS kind, collect(c.id) AS id, collect(d.title) AS name, [] AS type, [] AS aliases
"""

# Relations that have a type other than `$usual` ones, as parallel lists.
RELATIONS = """
MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity)
WHERE b.namespace = $namespace AND a.namespace = b.namespace AND any(name IN r.types WHERE NOT name IN $usual)
RETURN collect(a.id) AS source, collect(b.id) AS target, collect(r.types) AS types, collect(r.strength) AS weight
"""

# The wording of entities (source) and relations (source, target) as parallel lists: what communities are embedded by.
DESCRIPTIONS = """
MATCH (e:Entity) WHERE e.namespace = $namespace
RETURN 'Entity' AS kind, collect(e.id) AS source, [] AS target, [] AS types,
       collect(coalesce(e.description, '')) AS description
UNION ALL
MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'RELATED_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.types) AS types,
       collect(coalesce(r.description, '')) AS description
"""

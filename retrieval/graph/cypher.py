"""Every Cypher text of HopBench, one dialect for kglite and Neo4j.

Conventions. `$namespace` binds each query to one graph: the far end is compared with it and the near end with the far
one, which lets both engines enter by the index on `id` (comparing both with `$namespace` makes kglite scan). `$frontier`
is a list with a row per question: `q` (its index in the batch), `ids`, and what the traversal needs beside them. A
traversal comes back as one record per question (and kind of edge) whose columns are parallel lists: a hop of a whole
batch is one round trip. Values reach a query only as parameters.
"""

from __future__ import annotations

from retrieval.graph.schema import EDGE_COLUMNS, EDGE_ENDS, NODE_COLUMNS


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

# Document 1's hop. kind S: chunk-SIMILAR_TO-chunk (source, target, similarity). kind R: chunk-entity-RELATED_TO-entity
# (source chunk, via = its entity, target = related entity, strength). kind M: related entity-MENTIONED_IN->chunk,
# each related entity once (source entity, target chunk, mention weight). R joined with M gives every entity route,
# without the product of both crossing the wire.
EXPANSION_HOP = """
UNWIND $frontier AS f
CALL (f) {
  UNWIND f.ids AS id
  MATCH (c:Chunk {id: id})-[r:SIMILAR_TO]-(d:Chunk)
  WHERE r.similarity >= $min_similarity AND d.namespace = $namespace AND c.namespace = d.namespace
    AND NOT d.id IN f.visited
  RETURN 'S' AS kind, collect(id) AS source, collect('') AS via, collect(d.id) AS target,
         collect(r.similarity) AS weight
UNION ALL
  UNWIND f.ids AS id
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND c.namespace = x.namespace
  RETURN 'R' AS kind, collect(id) AS source, collect(e.id) AS via, collect(x.id) AS target,
         collect(r.strength) AS weight
UNION ALL
  UNWIND f.ids AS id
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND c.namespace = x.namespace
  WITH f, collect(DISTINCT x.id) AS related
  UNWIND related AS id
  MATCH (x:Entity {id: id})-[m:MENTIONED_IN]->(d:Chunk)
  WHERE d.namespace = $namespace AND x.namespace = d.namespace AND NOT d.id IN f.visited
  RETURN 'M' AS kind, collect(id) AS source, collect('') AS via, collect(d.id) AS target,
         collect(m.weight) AS weight
}
RETURN f.q AS q, kind, source, via, target, weight
"""

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

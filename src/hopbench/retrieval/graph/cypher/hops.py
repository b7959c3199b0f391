"""Hops of documents 1, 2, 4 and 5, and statements about entities: queries for the nodes of a batch."""

from __future__ import annotations

_NAMED = """
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)
  WHERE e.namespace = $namespace AND c.namespace = e.namespace"""
_STRONG = """
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace"""

# Document 1's hop, a record per kind that has edges, with lists of these: S, the similar chunks of each chunk; E, its
# entities; R, the entities related to each entity of E; M, the chunks that mention each entity of R. Joined they are
# all entity routes: 76,000 rows for 500 HotpotQA questions, whose routes, question by question, are 475,000 and take
# Neo4j 12 times as long.
EXPANSION_HOP = f"""
UNWIND $ids AS id
MATCH (c:Chunk {{id: id}})-[r:SIMILAR_TO]-(d:Chunk)
WHERE r.similarity >= $min_similarity AND d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'S' AS kind, collect(id) AS source, collect(d.id) AS target, collect(r.similarity) AS weight
UNION ALL
UNWIND $ids AS id{_NAMED}
RETURN 'E' AS kind, collect(id) AS source, collect(e.id) AS target, collect(m.weight) AS weight
UNION ALL
UNWIND $ids AS id{_NAMED}
WITH DISTINCT e.id AS id{_STRONG}
RETURN 'R' AS kind, collect(id) AS source, collect(x.id) AS target, collect(r.strength) AS weight
UNION ALL
UNWIND $ids AS id{_NAMED}
WITH DISTINCT e.id AS id{_STRONG}
WITH DISTINCT x.id AS id
MATCH (x:Entity {{id: id}})-[m:MENTIONED_IN]->(d:Chunk)
WHERE d.namespace = $namespace AND x.namespace = d.namespace
RETURN 'M' AS kind, collect(id) AS source, collect(d.id) AS target, collect(m.weight) AS weight
"""

# Document 2's hop. A frontier row has the entities `ids` and `visited`. Part "names" gives the frontier's own names,
# part "edges" the RELATED_TO edges to what is not visited yet, with the neighbour's name.
ENTITY_NEIGHBOURS = """
UNWIND $frontier AS f
CALL (f) {
  UNWIND f.ids AS id
  MATCH (e:Entity {id: id})
  WITH id, e.name AS name, e.namespace AS space
  WHERE space = $namespace
  RETURN 'names' AS part, collect(id) AS source, [] AS target, collect(name) AS name, [] AS weight
UNION ALL
  UNWIND f.ids AS id
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
    AND NOT x.id IN f.visited
  RETURN 'edges' AS part, collect(id) AS source, collect(x.id) AS target, collect(x.name) AS name,
         collect(r.strength) AS weight
}
RETURN f.q AS q, part, source, target, name, weight
"""

# One step over RELATED_TO, a record per entity: a neighbourhood is the same for every question that asks for it, so a
# batch asks for each of its entities once (500 HotpotQA questions: 16,000 rows instead of 73,000).
_RELATED = """
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))"""
_STANDS_IN = """
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace"""

# Document 4, stage 2: the related entities of each entity, with the strength of the relation.
RELATED_ENTITIES = f"""
UNWIND $ids AS id
CALL (id) {{{_RELATED}
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}}
RETURN id, target, weight
"""

# Document 4's entity→chunk expansion: where each entity is mentioned. Python counts the matched entities of a chunk.
ENTITY_CHUNKS = f"""
UNWIND $ids AS id
CALL (id) {{{_STANDS_IN}
  RETURN collect(c.id) AS target, collect(m.weight) AS weight
}}
RETURN id, target, weight
"""

# The same as document 4 writes it, for one question's `$entities`: full chunks by distinct matched entities. To paste.
ENTITY_SEARCH = f"""
UNWIND $entities AS id{_STANDS_IN}
WITH c, collect(DISTINCT e.name) AS matched_entities, count(DISTINCT e) AS entity_count
RETURN c.id AS id, c.content AS chunk_text, c.passage_id AS document_id, c.index AS chunk_index,
       matched_entities, entity_count
ORDER BY entity_count DESC, id LIMIT $top_k
"""

# Document 5's hop: kind R as above; kind M, for each entity newly related, where it is mentioned and how often.
NEIGHBORHOOD_HOP = f"""
UNWIND $ids AS id
CALL (id) {{{_RELATED}
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}}
RETURN 'R' AS kind, id, target, weight
UNION ALL
UNWIND $ids AS id{_RELATED}
WITH collect(DISTINCT x.id) AS related
UNWIND related AS id
CALL (id) {{{_STANDS_IN}
  RETURN collect(c.id) AS target, collect(m.count) AS weight
}}
RETURN 'M' AS kind, id, target, weight
"""

# What is known of entities: type, description, and in how many chunks they are mentioned.
ENTITY_CARDS = f"""
UNWIND $ids AS id
CALL (id) {{{_STANDS_IN}
  RETURN min(e.type) AS type, min(e.description) AS description, count(c) AS frequency
}}
RETURN id, type, description, frequency
"""

# Each entity's strongest relations with their wording, for the graph context block. `statements` are what is stated,
# each with its subject and object; `forward` says whether the edge leads away from the entity, which is the direction
# of a relation in a graph that HopBench did not build (ours sorts the ends of an edge).
STRONGEST_RELATIONS = f"""
UNWIND $ids AS id
CALL (id) {{{_RELATED}
  WITH e, r, x ORDER BY r.strength DESC, x.id LIMIT $limit
  RETURN collect(x.id) AS target, collect(x.name) AS name, collect(r.strength) AS weight,
         collect(r.types) AS types, collect(r.description) AS description,
         collect(coalesce(r.statements, [])) AS statements, collect(startNode(r) = e) AS forward
}}
RETURN id, target, name, weight, types, description, statements, forward
"""

# What is stated of pairs of entities ($pairs of {id, other_id}), a record per edge; nothing of edges whose types are
# all `$usual`. `statements` and `forward` as above.
STATED = """
UNWIND $pairs AS p
MATCH (a:Entity {id: p.id})-[r:RELATED_TO]-(b:Entity {id: p.other_id})
WHERE b.namespace = $namespace AND a.namespace = b.namespace
  AND (size(coalesce(r.statements, [])) > 0 OR NOT any(name IN coalesce(r.types, []) WHERE name IN $usual))
RETURN p.id AS source, p.other_id AS target, r.strength AS weight, r.types AS types, r.description AS description,
       coalesce(r.statements, []) AS statements, startNode(r) = a AS forward
"""

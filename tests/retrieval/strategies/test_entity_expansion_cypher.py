"""The texts of the queries that the two entity strategies send: a change shows here."""

from __future__ import annotations

from hopbench.retrieval.graph import cypher


def test_related_entities() -> None:
    expected = """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}
RETURN id, target, weight
"""
    assert expected == cypher.RELATED_ENTITIES


def test_entity_chunks() -> None:
    expected = """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN collect(c.id) AS target, collect(m.weight) AS weight
}
RETURN id, target, weight
"""
    assert expected == cypher.ENTITY_CHUNKS


def test_entity_search() -> None:
    expected = """
UNWIND $entities AS id
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace
WITH c, collect(DISTINCT e.name) AS matched_entities, count(DISTINCT e) AS entity_count
RETURN c.id AS id, c.content AS chunk_text, c.passage_id AS document_id, c.index AS chunk_index,
       matched_entities, entity_count
ORDER BY entity_count DESC, id LIMIT $top_k
"""
    assert expected == cypher.ENTITY_SEARCH


def test_neighborhood_hop() -> None:
    expected = """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}
RETURN 'R' AS kind, id, target, weight
UNION ALL
UNWIND $ids AS id
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
WITH collect(DISTINCT x.id) AS related
UNWIND related AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN collect(c.id) AS target, collect(m.count) AS weight
}
RETURN 'M' AS kind, id, target, weight
"""
    assert expected == cypher.NEIGHBORHOOD_HOP


def test_entity_cards() -> None:
    expected = """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN min(e.type) AS type, min(e.description) AS description, count(c) AS frequency
}
RETURN id, type, description, frequency
"""
    assert expected == cypher.ENTITY_CARDS


def test_strongest_relations() -> None:
    expected = """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  WITH e, r, x ORDER BY r.strength DESC, x.id LIMIT $limit
  RETURN collect(x.id) AS target, collect(x.name) AS name, collect(r.strength) AS weight,
         collect(r.types) AS types, collect(r.description) AS description,
         collect(coalesce(r.statements, [])) AS statements, collect(startNode(r) = e) AS forward
}
RETURN id, target, name, weight, types, description, statements, forward
"""
    assert expected == cypher.STRONGEST_RELATIONS

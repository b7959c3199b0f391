UNWIND $entities AS id
  CALL (id) { MATCH (e:Entity {id: id})-[each_m:MENTIONED_IN]->(c:Chunk) WHERE e <> c
    RETURN DISTINCT e, c }
  WITH * WHERE c.namespace = $namespace AND e.namespace = c.namespace
WITH c, collect(DISTINCT e.name) AS matched_entities, count(DISTINCT e) AS entity_count
RETURN c.id AS id, c.content AS chunk_text, c.passage_id AS document_id, c.index AS chunk_index,
       matched_entities, entity_count
ORDER BY entity_count DESC, id LIMIT $top_k

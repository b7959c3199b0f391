UNWIND $ids AS id
CALL (id) {
  CALL (id) { MATCH (e:Entity {id: id})-[each_m:MENTIONED_IN]->(c:Chunk) WHERE e <> c
    RETURN DISTINCT e, c }
  WITH * WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN min(e.type) AS type, min(e.description) AS description, count(c) AS frequency
}
RETURN id, type, description, frequency

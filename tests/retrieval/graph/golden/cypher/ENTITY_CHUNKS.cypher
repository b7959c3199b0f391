UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN collect(c.id) AS target, collect(m.weight) AS weight
}
RETURN id, target, weight

UNWIND $ids AS id
CALL (id) {
  CALL (id) { MATCH (e:Entity {id: id})-[each_m:MENTIONED_IN]->(c:Chunk) WHERE e <> c
    RETURN e, c, {weight: max(each_m.weight)} AS m }
  WITH * WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN collect(c.id) AS target, collect(m.weight) AS weight
}
RETURN id, target, weight

UNWIND $ids AS id
CALL (id) { MATCH (c:Chunk {id: id})-[each_r:SIMILAR_TO]-(d:Chunk) WHERE c <> d
    RETURN c, d, {similarity: max(each_r.similarity)} AS r }
  WITH * WHERE r.similarity >= $min_similarity AND d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'S' AS kind, collect(id) AS source, collect(d.id) AS target, collect(r.similarity) AS weight
UNION ALL
UNWIND $ids AS id
  CALL (id) { MATCH (c:Chunk {id: id})<-[each_m:MENTIONED_IN]-(e:Entity) WHERE c <> e
    RETURN c, e, {weight: max(each_m.weight)} AS m }
  WITH * WHERE e.namespace = $namespace AND c.namespace = e.namespace
RETURN 'E' AS kind, collect(id) AS source, collect(e.id) AS target, collect(m.weight) AS weight
UNION ALL
UNWIND $ids AS id
  CALL (id) { MATCH (c:Chunk {id: id})<-[each_m:MENTIONED_IN]-(e:Entity) WHERE c <> e
    RETURN DISTINCT c, e }
  WITH * WHERE e.namespace = $namespace AND c.namespace = e.namespace
WITH DISTINCT e.id AS id
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength)} AS r }
  WITH * WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
RETURN 'R' AS kind, collect(id) AS source, collect(x.id) AS target, collect(r.strength) AS weight
UNION ALL
UNWIND $ids AS id
  CALL (id) { MATCH (c:Chunk {id: id})<-[each_m:MENTIONED_IN]-(e:Entity) WHERE c <> e
    RETURN c, e, {weight: max(each_m.weight)} AS m }
  WITH * WHERE e.namespace = $namespace AND c.namespace = e.namespace
WITH DISTINCT e.id AS id
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength)} AS r }
  WITH * WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
WITH DISTINCT x.id AS id
CALL (id) { MATCH (x:Entity {id: id})-[each_m:MENTIONED_IN]->(d:Chunk) WHERE x <> d
    RETURN x, d, {weight: max(each_m.weight)} AS m }
  WITH * WHERE d.namespace = $namespace AND x.namespace = d.namespace
RETURN 'M' AS kind, collect(id) AS source, collect(d.id) AS target, collect(m.weight) AS weight

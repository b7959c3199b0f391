UNWIND $ids AS id
MATCH (c:Chunk {id: id})-[r:SIMILAR_TO]-(d:Chunk)
WHERE r.similarity >= $min_similarity AND d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'S' AS kind, collect(id) AS source, collect(d.id) AS target, collect(r.similarity) AS weight
UNION ALL
UNWIND $ids AS id
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)
  WHERE e.namespace = $namespace AND c.namespace = e.namespace
RETURN 'E' AS kind, collect(id) AS source, collect(e.id) AS target, collect(m.weight) AS weight
UNION ALL
UNWIND $ids AS id
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)
  WHERE e.namespace = $namespace AND c.namespace = e.namespace
WITH DISTINCT e.id AS id
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
RETURN 'R' AS kind, collect(id) AS source, collect(x.id) AS target, collect(r.strength) AS weight
UNION ALL
UNWIND $ids AS id
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)
  WHERE e.namespace = $namespace AND c.namespace = e.namespace
WITH DISTINCT e.id AS id
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
WITH DISTINCT x.id AS id
MATCH (x:Entity {id: id})-[m:MENTIONED_IN]->(d:Chunk)
WHERE d.namespace = $namespace AND x.namespace = d.namespace
RETURN 'M' AS kind, collect(id) AS source, collect(d.id) AS target, collect(m.weight) AS weight

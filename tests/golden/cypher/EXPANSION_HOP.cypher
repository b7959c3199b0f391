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

UNWIND $frontier AS f
CALL (f) {
  UNWIND f.chunks AS id
  MATCH (c:Chunk {id: id})
  WITH id, c.namespace AS space
  WHERE space = $namespace
  RETURN 'chunks' AS part, collect(id) AS source, [] AS kind, [] AS target, [] AS weight, [] AS tags
UNION ALL
  UNWIND f.chunks AS id
  MATCH (c:Chunk {id: id})-[r:SIMILAR_TO|MENTIONED_IN]-(d)
  WHERE (r.similarity >= $min_similarity OR r.weight >= $min_mention)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(id) AS source, collect(type(r)) AS kind, collect(d.id) AS target,
         collect(coalesce(r.similarity, r.weight)) AS weight, collect(coalesce(r.tags, [])) AS tags
UNION ALL
  UNWIND f.entities AS id
  MATCH (c:Entity {id: id})-[r:RELATED_TO|MENTIONED_IN]-(d)
  WHERE (r.strength >= $min_strength OR r.weight >= $min_mention)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(id) AS source, collect(type(r)) AS kind, collect(d.id) AS target,
         collect(coalesce(r.strength, r.weight)) AS weight, collect(coalesce(r.tags, [])) AS tags
}
RETURN part, source, kind, target, weight, tags

UNWIND $frontier AS f
CALL (f) {
  UNWIND f.seeds AS id
  MATCH (c:Chunk {id: id})
  WITH id, c, c.namespace AS space
  WHERE space = $namespace
  WITH id, EXISTS {
    (c)-[r:SIMILAR_TO|MENTIONED_IN]-() WHERE r.similarity >= $min_similarity OR r.weight >= $min_mention
  } AS connected
  RETURN 'seeds' AS part, collect(id) AS source, collect(connected) AS degree, [] AS kind, [] AS target,
         [] AS weight, [] AS tags
UNION ALL
  UNWIND f.chunks AS n
  MATCH (c:Chunk {id: n.id})
  WITH f, n, c, COUNT {
    (c)-[r:SIMILAR_TO|MENTIONED_IN]-() WHERE r.similarity >= $min_similarity OR r.weight >= $min_mention
  } AS degree
  WITH f, n, c, degree, $min_activation * sqrt(degree) / n.activation AS least
  WHERE least < 1.0 OR degree <= size(f.visited)
  MATCH (c)-[r:SIMILAR_TO|MENTIONED_IN]-(d)
  WHERE (r.similarity >= $min_similarity OR r.weight >= $min_mention)
    AND (r.similarity > least OR r.weight > least OR $min_weight > least OR d.id IN f.visited)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(n.id) AS source, collect(degree) AS degree, collect(type(r)) AS kind,
         collect(d.id) AS target, collect(coalesce(r.similarity, r.weight)) AS weight,
         collect(CASE WHEN $tagged THEN coalesce(r.tags, []) ELSE [] END) AS tags
UNION ALL
  UNWIND f.entities AS n
  MATCH (c:Entity {id: n.id})
  WITH f, n, c, COUNT { (c)-[r:RELATED_TO]-() WHERE r.strength >= $min_strength }
       + CASE WHEN $min_mention > 1 THEN 0 ELSE COUNT { (c)-[:MENTIONED_IN]->() } END AS degree
  WITH f, n, c, degree, $min_activation * sqrt(degree) / n.activation AS least
  WHERE least < 1.0 OR degree <= size(f.visited)
  MATCH (c)-[r:RELATED_TO|MENTIONED_IN]-(d)
  WHERE (r.strength >= $min_strength OR r.weight >= $min_mention)
    AND (r.strength > least OR r.weight > least OR $min_weight > least OR d.id IN f.visited)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(n.id) AS source, collect(degree) AS degree, collect(type(r)) AS kind,
         collect(d.id) AS target, collect(coalesce(r.strength, r.weight)) AS weight,
         collect(CASE WHEN $tagged THEN coalesce(r.tags, []) ELSE [] END) AS tags
}
RETURN f.q AS q, part, source, degree, kind, target, weight, tags

UNWIND $frontier AS f
CALL (f) {
  UNWIND f.seeds AS id
  MATCH (c:Chunk {id: id})
  WITH id, c, c.namespace AS space
  WHERE space = $namespace
  WITH id, EXISTS { MATCH (c)-[any_r:SIMILAR_TO|MENTIONED_IN]-(other) WHERE c <> other AND (any_r.similarity >= $min_similarity OR any_r.weight >= $min_mention) } AS connected
  RETURN 'seeds' AS part, collect(id) AS source, collect(connected) AS degree, [] AS kind, [] AS target,
         [] AS weight, [] AS tags
UNION ALL
  UNWIND f.chunks AS n
  MATCH (c:Chunk {id: n.id})
  WITH f, n, c, COUNT { MATCH (c)-[any_r:SIMILAR_TO|MENTIONED_IN]-(other) WHERE c <> other AND (any_r.similarity >= $min_similarity OR any_r.weight >= $min_mention) RETURN DISTINCT other } AS degree
  WITH f, n, c, degree, $min_activation * sqrt(degree) / n.activation AS least
  WHERE least < 1.0 OR degree <= size(f.visited)
  CALL (c) { MATCH (c)-[each_r:SIMILAR_TO|MENTIONED_IN]-(d) WHERE c <> d
    RETURN d, {similarity: max(each_r.similarity), weight: max(each_r.weight), kind: max(type(each_r)), tags: reduce(all = [], some IN collect(coalesce(each_r.tags, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE (r.similarity >= $min_similarity OR r.weight >= $min_mention)
    AND (r.similarity > least OR r.weight > least OR $min_weight > least OR d.id IN f.visited)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(n.id) AS source, collect(degree) AS degree, collect(r.kind) AS kind,
         collect(d.id) AS target, collect(coalesce(r.similarity, r.weight)) AS weight,
         collect(CASE WHEN $tagged THEN coalesce(r.tags, []) ELSE [] END) AS tags
UNION ALL
  UNWIND f.entities AS n
  MATCH (c:Entity {id: n.id})
  WITH f, n, c, COUNT { MATCH (c)-[any_r:RELATED_TO]-(other:Entity) WHERE c <> other AND (any_r.strength >= $min_strength) RETURN DISTINCT other }
       + CASE WHEN $min_mention > 1 THEN 0 ELSE COUNT { MATCH (c)-[:MENTIONED_IN]->(other:Chunk) WHERE c <> other RETURN DISTINCT other } END AS degree
  WITH f, n, c, degree, $min_activation * sqrt(degree) / n.activation AS least
  WHERE least < 1.0 OR degree <= size(f.visited)
  CALL (c) { MATCH (c)-[each_r:RELATED_TO|MENTIONED_IN]-(d) WHERE c <> d
    RETURN d, {strength: max(each_r.strength), weight: max(each_r.weight), kind: max(type(each_r)), tags: reduce(all = [], some IN collect(coalesce(each_r.tags, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE (r.strength >= $min_strength OR r.weight >= $min_mention)
    AND (r.strength > least OR r.weight > least OR $min_weight > least OR d.id IN f.visited)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(n.id) AS source, collect(degree) AS degree, collect(r.kind) AS kind,
         collect(d.id) AS target, collect(coalesce(r.strength, r.weight)) AS weight,
         collect(CASE WHEN $tagged THEN coalesce(r.tags, []) ELSE [] END) AS tags
}
RETURN f.q AS q, part, source, degree, kind, target, weight, tags

UNWIND $frontier AS f
CALL (f) {
  UNWIND f.chunks AS id
  MATCH (c:Chunk {id: id})
  WITH id, c.namespace AS space
  WHERE space = $namespace
  RETURN 'chunks' AS part, collect(id) AS source, [] AS kind, [] AS target, [] AS weight, [] AS tags
UNION ALL
  UNWIND f.chunks AS id
  CALL (id) { MATCH (c:Chunk {id: id})-[each_r:SIMILAR_TO|MENTIONED_IN]-(d) WHERE c <> d
    RETURN c, d, {similarity: max(each_r.similarity), weight: max(each_r.weight), kind: max(type(each_r)), tags: reduce(all = [], some IN collect(coalesce(each_r.tags, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE (r.similarity >= $min_similarity OR r.weight >= $min_mention)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(id) AS source, collect(r.kind) AS kind, collect(d.id) AS target,
         collect(coalesce(r.similarity, r.weight)) AS weight, collect(coalesce(r.tags, [])) AS tags
UNION ALL
  UNWIND f.entities AS id
  CALL (id) { MATCH (c:Entity {id: id})-[each_r:RELATED_TO|MENTIONED_IN]-(d) WHERE c <> d
    RETURN c, d, {strength: max(each_r.strength), weight: max(each_r.weight), kind: max(type(each_r)), tags: reduce(all = [], some IN collect(coalesce(each_r.tags, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE (r.strength >= $min_strength OR r.weight >= $min_mention)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(id) AS source, collect(r.kind) AS kind, collect(d.id) AS target,
         collect(coalesce(r.strength, r.weight)) AS weight, collect(coalesce(r.tags, [])) AS tags
}
RETURN part, source, kind, target, weight, tags

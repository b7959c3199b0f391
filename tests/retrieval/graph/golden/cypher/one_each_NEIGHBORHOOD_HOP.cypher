UNWIND $ids AS id
CALL (id) {
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength), types: reduce(all = [], some IN collect(coalesce(each_r.types, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}
RETURN 'R' AS kind, id, target, weight
UNION ALL
UNWIND $ids AS id
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength), types: reduce(all = [], some IN collect(coalesce(each_r.types, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
WITH collect(DISTINCT x.id) AS related
UNWIND related AS id
CALL (id) {
  CALL (id) { MATCH (e:Entity {id: id})-[each_m:MENTIONED_IN]->(c:Chunk) WHERE e <> c
    RETURN e, c, {count: max(each_m.count)} AS m }
  WITH * WHERE c.namespace = $namespace AND e.namespace = c.namespace
  RETURN collect(c.id) AS target, collect(m.count) AS weight
}
RETURN 'M' AS kind, id, target, weight

UNWIND $ids AS id
CALL (id) {
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength), types: reduce(all = [], some IN collect(coalesce(each_r.types, [])) | all + [name IN some WHERE NOT name IN all])} AS r }
  WITH * WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}
RETURN id, target, weight

UNWIND $ids AS id
CALL (id) {
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength), types: reduce(all = [], some IN collect(coalesce(each_r.types, [])) | all + [name IN some WHERE NOT name IN all]), description: max(each_r.description), statements: collect({strength: each_r.strength, types: each_r.types, description: each_r.description, statements: each_r.statements, forward: startNode(each_r) = e}), forward: max(startNode(each_r) = e)} AS r }
  WITH * WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  WITH e, r, x ORDER BY r.strength DESC, x.id LIMIT $limit
  RETURN collect(x.id) AS target, collect(x.name) AS name, collect(r.strength) AS weight,
         collect(r.types) AS types, collect(r.description) AS description,
         collect(coalesce(r.statements, [])) AS statements, collect(r.forward) AS forward
}
RETURN id, target, name, weight, types, description, statements, forward

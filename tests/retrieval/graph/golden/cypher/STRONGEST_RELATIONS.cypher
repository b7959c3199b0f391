UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  WITH e, r, x ORDER BY r.strength DESC, x.id LIMIT $limit
  RETURN collect(x.id) AS target, collect(x.name) AS name, collect(r.strength) AS weight,
         collect(r.types) AS types, collect(r.description) AS description,
         collect(coalesce(r.statements, [])) AS statements, collect(startNode(r) = e) AS forward
}
RETURN id, target, name, weight, types, description, statements, forward

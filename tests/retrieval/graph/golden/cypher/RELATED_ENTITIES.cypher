UNWIND $ids AS id
CALL (id) {
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}
RETURN id, target, weight

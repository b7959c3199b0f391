UNWIND $frontier AS f
CALL (f) {
  UNWIND f.ids AS id
  MATCH (e:Entity {id: id})
  WITH id, e.name AS name, e.namespace AS space
  WHERE space = $namespace
  RETURN 'names' AS part, collect(id) AS source, [] AS target, collect(name) AS name, [] AS weight
UNION ALL
  UNWIND f.ids AS id
  CALL (id) { MATCH (e:Entity {id: id})-[each_r:RELATED_TO]-(x:Entity) WHERE e <> x
    RETURN e, x, {strength: max(each_r.strength)} AS r }
  WITH * WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
    AND NOT x.id IN f.visited
  RETURN 'edges' AS part, collect(id) AS source, collect(x.id) AS target, collect(x.name) AS name,
         collect(r.strength) AS weight
}
RETURN f.q AS q, part, source, target, name, weight

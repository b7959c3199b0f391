UNWIND $pairs AS p
MATCH (a:Entity {id: p.id})-[r:RELATED_TO]-(b:Entity {id: p.other_id})
WHERE b.namespace = $namespace AND a.namespace = b.namespace
  AND (size(coalesce(r.statements, [])) > 0 OR NOT any(name IN coalesce(r.types, []) WHERE name IN $usual))
RETURN p.id AS source, p.other_id AS target, r.strength AS weight, r.types AS types, r.description AS description,
       coalesce(r.statements, []) AS statements, startNode(r) = a AS forward

UNWIND $pairs AS p
MATCH (a:Entity {id: p.source})-[r:RELATED_TO]-(b:Entity {id: p.target})
WHERE b.namespace = $namespace AND a.namespace = b.namespace
  AND (size(coalesce(r.statements, [])) > 0 OR NOT any(name IN coalesce(r.types, []) WHERE name IN $usual))
RETURN p.source AS source, p.target AS target, r.strength AS weight, r.types AS types, r.description AS description,
       coalesce(r.statements, []) AS statements, startNode(r) = a AS forward

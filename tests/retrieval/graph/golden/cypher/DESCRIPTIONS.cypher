MATCH (e:Entity) WHERE e.namespace = $namespace
RETURN 'Entity' AS kind, collect(e.id) AS source, [] AS target, [] AS types, collect(coalesce(e.description, '')) AS description
UNION ALL
MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'RELATED_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.types) AS types, collect(coalesce(r.description, '')) AS description

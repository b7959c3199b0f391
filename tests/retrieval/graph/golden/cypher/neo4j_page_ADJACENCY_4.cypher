MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) USING INDEX SEEK b:Entity(namespace, id) WHERE b.namespace = $namespace AND b.id > $after AND b.id <= $until AND a.namespace = b.namespace
RETURN 'RELATED_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.strength) AS weight

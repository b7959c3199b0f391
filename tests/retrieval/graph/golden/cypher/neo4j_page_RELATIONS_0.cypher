MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) USING INDEX SEEK b:Entity(namespace, id) WHERE b.namespace = $namespace AND b.id > $after AND b.id <= $until AND a.namespace = b.namespace AND any(name IN r.types WHERE NOT name IN $usual)
RETURN 'RELATED_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.types) AS types, collect(r.strength) AS weight

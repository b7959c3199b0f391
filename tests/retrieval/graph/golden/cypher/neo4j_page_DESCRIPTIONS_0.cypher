MATCH (e:Entity) USING INDEX SEEK e:Entity(namespace, id) WHERE e.namespace = $namespace AND e.id > $after AND e.id <= $until
RETURN 'Entity' AS kind, collect(e.id) AS source, [] AS target, [] AS types, collect(coalesce(e.description, '')) AS description

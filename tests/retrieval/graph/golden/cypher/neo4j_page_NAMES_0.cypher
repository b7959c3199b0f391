MATCH (e:Entity) USING INDEX SEEK e:Entity(namespace, id) WHERE e.namespace = $namespace AND e.id > $after AND e.id <= $until
RETURN 'Entity' AS kind, collect(e.id) AS id, collect(e.name) AS name, collect(e.type) AS type, collect(e.aliases) AS aliases

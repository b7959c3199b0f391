MATCH (e:Entity) WHERE e.namespace = $namespace
RETURN 'Entity' AS kind, collect(e.id) AS id, collect(e.name) AS name, collect(e.type) AS type, collect(e.aliases) AS aliases
UNION ALL
MATCH (d:Document)-[:CONTAINS]->(c:Chunk) WHERE c.namespace = $namespace AND d.namespace = c.namespace
RETURN 'Document' AS kind, collect(c.id) AS id, collect(d.title) AS name, [] AS type, [] AS aliases

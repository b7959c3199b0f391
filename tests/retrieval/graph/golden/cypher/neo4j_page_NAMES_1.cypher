MATCH (d:Document)-[:CONTAINS]->(c:Chunk) USING INDEX SEEK c:Chunk(namespace, id) WHERE c.namespace = $namespace AND c.id > $after AND c.id <= $until AND d.namespace = c.namespace
RETURN 'Document' AS kind, collect(c.id) AS id, collect(d.title) AS name, [] AS type, [] AS aliases

MATCH (a:Chunk)-[r:NEXT]->(b:Chunk) USING INDEX SEEK b:Chunk(namespace, id) WHERE b.namespace = $namespace AND b.id > $after AND b.id <= $until AND a.namespace = b.namespace
RETURN 'NEXT' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(1.0) AS weight

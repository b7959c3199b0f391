MATCH (a:Chunk)-[r:NEXT]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target

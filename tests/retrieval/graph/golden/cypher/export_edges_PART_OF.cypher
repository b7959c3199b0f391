MATCH (a:Chunk)-[r:PART_OF]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target

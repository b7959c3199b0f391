MATCH (a:Document)-[r:CONTAINS]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target

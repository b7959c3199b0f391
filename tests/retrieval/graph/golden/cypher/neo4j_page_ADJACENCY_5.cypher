MATCH (a:Chunk)-[r:SIMILAR_TO]->(b:Chunk) USING INDEX SEEK b:Chunk(namespace, id) WHERE b.namespace = $namespace AND b.id > $after AND b.id <= $until AND a.namespace = b.namespace
RETURN 'SIMILAR_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.similarity) AS weight

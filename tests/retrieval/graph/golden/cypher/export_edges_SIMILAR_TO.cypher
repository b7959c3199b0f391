MATCH (a:Chunk)-[r:SIMILAR_TO]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target, r.similarity AS `similarity`, r.tags AS `tags`

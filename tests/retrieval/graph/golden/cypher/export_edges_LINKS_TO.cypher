MATCH (a:Chunk)-[r:LINKS_TO]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target, r.text AS `text`, r.weight AS `weight`, r.tags AS `tags`

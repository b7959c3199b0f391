MATCH (a:Chunk)-[r:LINKS_TO]->(b:Chunk) USING INDEX SEEK b:Chunk(namespace, id) WHERE b.namespace = $namespace AND b.id > $after AND b.id <= $until AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target, r.text AS `text`, r.weight AS `weight`, r.tags AS `tags`

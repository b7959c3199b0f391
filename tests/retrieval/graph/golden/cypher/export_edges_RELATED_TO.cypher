MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target, r.strength AS `strength`, r.types AS `types`, r.description AS `description`, r.tags AS `tags`, r.statements AS `statements`

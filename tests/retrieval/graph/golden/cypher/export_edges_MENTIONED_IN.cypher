MATCH (a:Entity)-[r:MENTIONED_IN]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN a.id AS source, b.id AS target, r.count AS `count`, r.weight AS `weight`, r.tags AS `tags`

MATCH (a:Entity)-[r:MENTIONED_IN]->(b:Chunk) USING INDEX SEEK b:Chunk(namespace, id) WHERE b.namespace = $namespace AND b.id > $after AND b.id <= $until AND a.namespace = b.namespace
RETURN 'MENTIONED_IN' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.weight) AS weight

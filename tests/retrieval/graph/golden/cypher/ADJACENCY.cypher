MATCH (a:Chunk)-[r:LINKS_TO]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'LINKS_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.weight) AS weight
UNION ALL
MATCH (a:Entity)-[r:MENTIONED_IN]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'MENTIONED_IN' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.weight) AS weight
UNION ALL
MATCH (a:Chunk)-[r:NEXT]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'NEXT' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(1.0) AS weight
UNION ALL
MATCH (a:Chunk)-[r:PART_OF]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'PART_OF' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(1.0) AS weight
UNION ALL
MATCH (a:Entity)-[r:RELATED_TO]->(b:Entity) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'RELATED_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.strength) AS weight
UNION ALL
MATCH (a:Chunk)-[r:SIMILAR_TO]->(b:Chunk) WHERE b.namespace = $namespace AND a.namespace = b.namespace
RETURN 'SIMILAR_TO' AS kind, collect(a.id) AS source, collect(b.id) AS target, collect(r.similarity) AS weight

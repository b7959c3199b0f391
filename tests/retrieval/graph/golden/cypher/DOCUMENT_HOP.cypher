UNWIND $ids AS id
MATCH (c:Chunk {id: id})-[r:LINKS_TO]-(d:Chunk)
WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'LINKS_TO' AS kind, collect(id) AS source, collect(d.id) AS target, collect(r.weight) AS weight
UNION ALL
UNWIND $ids AS id
MATCH (c:Chunk {id: id})-[r:NEXT]-(d:Chunk)
WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'NEXT' AS kind, collect(id) AS source, collect(d.id) AS target, collect(1.0) AS weight
UNION ALL
UNWIND $ids AS id
MATCH (c:Chunk {id: id})-[r:PART_OF]-(d:Chunk)
WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'PART_OF' AS kind, collect(id) AS source, collect(d.id) AS target, collect(1.0) AS weight

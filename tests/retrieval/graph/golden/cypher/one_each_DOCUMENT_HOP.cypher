UNWIND $ids AS id
CALL (id) { MATCH (c:Chunk {id: id})-[each_r:LINKS_TO]-(d:Chunk) WHERE c <> d
    RETURN c, d, {weight: max(each_r.weight)} AS r }
  WITH * WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'LINKS_TO' AS kind, collect(id) AS source, collect(d.id) AS target, collect(r.weight) AS weight
UNION ALL
UNWIND $ids AS id
CALL (id) { MATCH (c:Chunk {id: id})-[each_r:NEXT]-(d:Chunk) WHERE c <> d
    RETURN DISTINCT c, d }
  WITH * WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'NEXT' AS kind, collect(id) AS source, collect(d.id) AS target, collect(1.0) AS weight
UNION ALL
UNWIND $ids AS id
CALL (id) { MATCH (c:Chunk {id: id})-[each_r:PART_OF]-(d:Chunk) WHERE c <> d
    RETURN DISTINCT c, d }
  WITH * WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'PART_OF' AS kind, collect(id) AS source, collect(d.id) AS target, collect(1.0) AS weight

MATCH (n:Chunk) USING INDEX SEEK n:Chunk(namespace, id) WHERE n.namespace = $namespace AND n.id > $after AND n.id <= $until
RETURN n.id AS `id`, n.passage_id AS `passage_id`, n.index AS `index`, n.content AS `content`

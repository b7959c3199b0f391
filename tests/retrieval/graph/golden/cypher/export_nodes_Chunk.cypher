MATCH (n:Chunk) WHERE n.namespace = $namespace
RETURN n.id AS `id`, n.passage_id AS `passage_id`, n.index AS `index`, n.content AS `content`

MATCH (n:Document) WHERE n.namespace = $namespace
RETURN n.id AS `id`, n.title AS `title`

MATCH (n:Document) USING INDEX SEEK n:Document(namespace, id) WHERE n.namespace = $namespace AND n.id > $after AND n.id <= $until
RETURN n.id AS `id`, n.title AS `title`

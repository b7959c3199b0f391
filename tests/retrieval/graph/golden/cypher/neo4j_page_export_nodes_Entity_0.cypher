MATCH (n:Entity) USING INDEX SEEK n:Entity(namespace, id) WHERE n.namespace = $namespace AND n.id > $after AND n.id <= $until
RETURN n.id AS `id`, n.name AS `name`, n.type AS `type`, n.description AS `description`, n.aliases AS `aliases`

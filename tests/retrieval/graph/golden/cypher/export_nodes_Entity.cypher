MATCH (n:Entity) WHERE n.namespace = $namespace
RETURN n.id AS `id`, n.name AS `name`, n.type AS `type`, n.description AS `description`, n.aliases AS `aliases`

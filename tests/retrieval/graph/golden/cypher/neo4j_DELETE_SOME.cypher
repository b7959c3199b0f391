MATCH (n:Node {namespace: $namespace}) WITH n LIMIT $limit DETACH DELETE n RETURN count(*) AS deleted

UNWIND $rows AS row MERGE (n:Entity {namespace: $namespace, id: row.id}) SET n:Node, n += row.properties

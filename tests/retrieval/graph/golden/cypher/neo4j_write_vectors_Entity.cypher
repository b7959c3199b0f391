UNWIND $rows AS row MATCH (n:Entity {namespace: $namespace, id: row.id}) CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)

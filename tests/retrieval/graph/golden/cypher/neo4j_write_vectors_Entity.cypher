UNWIND $rows AS row MATCH (n:Entity {namespace: $namespace, id: row.id}) USING INDEX SEEK n:Entity(namespace, id) CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)

UNWIND $rows AS row MATCH (n:Chunk {namespace: $namespace, id: row.id}) CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)

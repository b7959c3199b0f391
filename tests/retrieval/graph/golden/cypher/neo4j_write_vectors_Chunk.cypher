UNWIND $rows AS row MATCH (n:Chunk {namespace: $namespace, id: row.id}) USING INDEX SEEK n:Chunk(namespace, id) CALL db.create.setNodeVectorProperty(n, 'embedding', row.vector)

UNWIND $rows AS row MERGE (n:Chunk {namespace: $namespace, id: row.id}) SET n:Node, n += row.properties

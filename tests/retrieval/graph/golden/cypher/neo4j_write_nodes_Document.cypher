UNWIND $rows AS row MERGE (n:Document {namespace: $namespace, id: row.id}) SET n:Node, n += row.properties

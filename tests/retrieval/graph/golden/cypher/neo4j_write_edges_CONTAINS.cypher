UNWIND $rows AS row MATCH (a:Document {namespace: $namespace, id: row.source}) MATCH (b:Chunk {namespace: $namespace, id: row.target}) MERGE (a)-[r:CONTAINS]->(b) SET r += row.properties

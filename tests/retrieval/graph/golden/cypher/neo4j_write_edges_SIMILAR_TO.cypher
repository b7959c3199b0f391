UNWIND $rows AS row MATCH (a:Chunk {namespace: $namespace, id: row.source}) MATCH (b:Chunk {namespace: $namespace, id: row.target}) MERGE (a)-[r:SIMILAR_TO]->(b) SET r += row.properties

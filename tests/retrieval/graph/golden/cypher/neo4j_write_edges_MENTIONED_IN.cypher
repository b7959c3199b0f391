UNWIND $rows AS row MATCH (a:Entity {namespace: $namespace, id: row.source}) MATCH (b:Chunk {namespace: $namespace, id: row.target}) MERGE (a)-[r:MENTIONED_IN]->(b) SET r += row.properties

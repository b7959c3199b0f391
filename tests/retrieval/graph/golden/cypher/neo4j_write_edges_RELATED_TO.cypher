UNWIND $rows AS row MATCH (a:Entity {namespace: $namespace, id: row.source}) MATCH (b:Entity {namespace: $namespace, id: row.target}) MERGE (a)-[r:RELATED_TO]->(b) SET r += row.properties

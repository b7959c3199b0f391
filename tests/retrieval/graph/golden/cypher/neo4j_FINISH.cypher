MERGE (b:Build {namespace: $namespace, id: 'build'}) SET b:Node, b.record = $record
WITH b OPTIONAL MATCH (m:Building {namespace: $namespace, id: 'build'}) DETACH DELETE m

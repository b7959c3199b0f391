MERGE (m:Building {namespace: $namespace, id: 'build'}) SET m:Node, m.key = $key
WITH m OPTIONAL MATCH (b:Build {namespace: $namespace, id: 'build'}) DETACH DELETE b

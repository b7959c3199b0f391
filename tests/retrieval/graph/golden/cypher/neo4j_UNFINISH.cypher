MATCH (b:Build {namespace: $namespace, id: 'build'}) DETACH DELETE b

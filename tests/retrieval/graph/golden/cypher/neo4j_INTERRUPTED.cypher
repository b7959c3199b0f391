MATCH (b:Building {namespace: $namespace, id: 'build'}) RETURN b.key AS key

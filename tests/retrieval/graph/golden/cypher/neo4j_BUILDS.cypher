MATCH (b:Build) RETURN b.namespace AS namespace, b.record AS record ORDER BY namespace

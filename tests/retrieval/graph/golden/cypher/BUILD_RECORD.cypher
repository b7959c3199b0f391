MATCH (b:Build) WHERE b.namespace = $namespace RETURN b.record AS record

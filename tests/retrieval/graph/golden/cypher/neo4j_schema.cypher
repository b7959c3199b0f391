CREATE CONSTRAINT hopbench_document IF NOT EXISTS FOR (n:Document) REQUIRE (n.namespace, n.id) IS UNIQUE;
CREATE CONSTRAINT hopbench_chunk IF NOT EXISTS FOR (n:Chunk) REQUIRE (n.namespace, n.id) IS UNIQUE;
CREATE CONSTRAINT hopbench_entity IF NOT EXISTS FOR (n:Entity) REQUIRE (n.namespace, n.id) IS UNIQUE;
CREATE CONSTRAINT hopbench_build IF NOT EXISTS FOR (n:Build) REQUIRE (n.namespace, n.id) IS UNIQUE;
CREATE CONSTRAINT hopbench_building IF NOT EXISTS FOR (n:Building) REQUIRE (n.namespace, n.id) IS UNIQUE;
CREATE RANGE INDEX hopbench_node_id IF NOT EXISTS FOR (n:Node) ON (n.id);
CREATE RANGE INDEX hopbench_node_namespace IF NOT EXISTS FOR (n:Node) ON (n.namespace);
CREATE RANGE INDEX hopbench_document_id IF NOT EXISTS FOR (n:Document) ON (n.id);
CREATE RANGE INDEX hopbench_document_namespace IF NOT EXISTS FOR (n:Document) ON (n.namespace);
CREATE RANGE INDEX hopbench_chunk_id IF NOT EXISTS FOR (n:Chunk) ON (n.id);
CREATE RANGE INDEX hopbench_chunk_namespace IF NOT EXISTS FOR (n:Chunk) ON (n.namespace);
CREATE RANGE INDEX hopbench_entity_id IF NOT EXISTS FOR (n:Entity) ON (n.id);
CREATE RANGE INDEX hopbench_entity_namespace IF NOT EXISTS FOR (n:Entity) ON (n.namespace);
CREATE RANGE INDEX hopbench_build_id IF NOT EXISTS FOR (n:Build) ON (n.id);
CREATE RANGE INDEX hopbench_build_namespace IF NOT EXISTS FOR (n:Build) ON (n.namespace);
CREATE VECTOR INDEX hopbench_chunk_vector IF NOT EXISTS FOR (n:Chunk) ON (n.embedding) OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}};
CREATE VECTOR INDEX hopbench_entity_vector IF NOT EXISTS FOR (n:Entity) ON (n.embedding) OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}

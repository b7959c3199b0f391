"""All Cypher of HopBench: strategies' queries are one text for kglite and Neo4j; only Neo4j is written by Cypher.

Conventions. `$namespace` binds each query to one graph: the far end is compared with it and the near end with the far
one, so that both engines enter by the index on `id` (where both are compared with `$namespace`, kglite scans).
`$frontier` is a list with a row per question: `q` (its index in the batch), `ids`, and other values that the traversal
needs; `$ids` are the nodes of all questions, if the query is the same for each. A traversal returns a record per
question or node (and kind of edge) whose columns are parallel lists: a hop of a whole batch is one round trip. Values
reach a query only as parameters.
"""

from hopbench.retrieval.graph.cypher.hops import (
    ACTIVATION_EDGES,
    ACTIVATION_HOP,
    ACTIVATION_PASTE,
    ENTITY_CARDS,
    ENTITY_CHUNKS,
    ENTITY_NEIGHBOURS,
    ENTITY_SEARCH,
    EXPANSION_HOP,
    NEIGHBORHOOD_HOP,
    RELATED_ENTITIES,
    STATED,
    STRONGEST_RELATIONS,
)
from hopbench.retrieval.graph.cypher.neo4j import one_each
from hopbench.retrieval.graph.cypher.whole_graph import (
    ADJACENCY,
    BUILD_RECORD,
    DESCRIPTIONS,
    NAMES,
    PARTS,
    RELATIONS,
    export_edges,
    export_nodes,
)

__all__ = [
    "ACTIVATION_EDGES",
    "ACTIVATION_HOP",
    "ACTIVATION_PASTE",
    "ADJACENCY",
    "BUILD_RECORD",
    "DESCRIPTIONS",
    "ENTITY_CARDS",
    "ENTITY_CHUNKS",
    "ENTITY_NEIGHBOURS",
    "ENTITY_SEARCH",
    "EXPANSION_HOP",
    "NAMES",
    "NEIGHBORHOOD_HOP",
    "PARTS",
    "RELATED_ENTITIES",
    "RELATIONS",
    "STATED",
    "STRONGEST_RELATIONS",
    "export_edges",
    "export_nodes",
    "one_each",
]

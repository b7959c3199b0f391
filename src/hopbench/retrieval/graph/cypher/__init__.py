"""All Cypher of HopBench: strategies' queries are one text for kglite and Neo4j; only Neo4j is written by Cypher.

Conventions. `$namespace` binds each query to one graph: the far end is compared with it and the near end with the far
one, so that both engines enter by the index on `id` (where both are compared with `$namespace`, kglite scans).
`$frontier` is a list with a row per question: `q` (its index in the batch), `ids`, and other values that the traversal
needs; `$ids` are the nodes of all questions, if the query is the same for each. A traversal returns a record per
question or node (and kind of edge) whose columns are parallel lists: a hop of a whole batch is one round trip. Values
reach a query only as parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hopbench.retrieval.graph.schema import CHUNK, DOCUMENT_EDGES, EDGE_TYPES, ENTITY, NODE_COLUMNS, RELATED_TO, WALKED


def _weight(kind: str) -> str:
    weight = EDGE_TYPES[kind].weight
    return f"r.{weight}" if weight else "1.0"


_NAMED = """
  MATCH (c:Chunk {id: id})<-[m:MENTIONED_IN]-(e:Entity)
  WHERE e.namespace = $namespace AND c.namespace = e.namespace"""
_STRONG = """
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace"""

# A hop of the Graph Expansion Flow: a record per kind that has edges, with lists of these: S, the similar chunks of
# each chunk; E, its entities; R, the entities related to each entity of E; M, the chunks that mention each entity of
# R. Joined they give all entity routes: 76,000 rows for 500 HotpotQA questions, whose routes, question by question,
# are 475,000 and take Neo4j 12 times as long.
EXPANSION_HOP = f"""
UNWIND $ids AS id
MATCH (c:Chunk {{id: id}})-[r:SIMILAR_TO]-(d:Chunk)
WHERE r.similarity >= $min_similarity AND d.namespace = $namespace AND c.namespace = d.namespace
RETURN 'S' AS kind, collect(id) AS source, collect(d.id) AS target, collect(r.similarity) AS weight
UNION ALL
UNWIND $ids AS id{_NAMED}
RETURN 'E' AS kind, collect(id) AS source, collect(e.id) AS target, collect(m.weight) AS weight
UNION ALL
UNWIND $ids AS id{_NAMED}
WITH DISTINCT e.id AS id{_STRONG}
RETURN 'R' AS kind, collect(id) AS source, collect(x.id) AS target, collect(r.strength) AS weight
UNION ALL
UNWIND $ids AS id{_NAMED}
WITH DISTINCT e.id AS id{_STRONG}
WITH DISTINCT x.id AS id
MATCH (x:Entity {{id: id}})-[m:MENTIONED_IN]->(d:Chunk)
WHERE d.namespace = $namespace AND x.namespace = d.namespace
RETURN 'M' AS kind, collect(id) AS source, collect(d.id) AS target, collect(m.weight) AS weight
"""

# The edges of documents at some chunks, whichever way they point: a record for each type of edge. One without a
# weight weighs 1.
DOCUMENT_HOP = "UNION ALL".join(
    f"""
UNWIND $ids AS id
MATCH (c:Chunk {{id: id}})-[r:{kind}]-(d:Chunk)
WHERE d.namespace = $namespace AND c.namespace = d.namespace
RETURN '{kind}' AS kind, collect(id) AS source, collect(d.id) AS target, collect({_weight(kind)}) AS weight
"""
    for kind in DOCUMENT_EDGES
)

# A hop of KG2RAG query expansion. A frontier row has the entities `ids` and `visited`. Part "names" gives the
# frontier's own names, part "edges" the RELATED_TO edges to unvisited entities, with the neighbour's name.
ENTITY_NEIGHBOURS = """
UNWIND $frontier AS f
CALL (f) {
  UNWIND f.ids AS id
  MATCH (e:Entity {id: id})
  WITH id, e.name AS name, e.namespace AS space
  WHERE space = $namespace
  RETURN 'names' AS part, collect(id) AS source, [] AS target, collect(name) AS name, [] AS weight
UNION ALL
  UNWIND f.ids AS id
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE r.strength >= $min_strength AND x.namespace = $namespace AND e.namespace = x.namespace
    AND NOT x.id IN f.visited
  RETURN 'edges' AS part, collect(id) AS source, collect(x.id) AS target, collect(x.name) AS name,
         collect(r.strength) AS weight
}
RETURN f.q AS q, part, source, target, name, weight
"""

# One step over RELATED_TO, a record per entity: a neighbourhood is the same for every question, so a batch queries
# each of its entities once (500 HotpotQA questions: 16,000 rows instead of 73,000).
_RELATED = """
  MATCH (e:Entity {id: id})-[r:RELATED_TO]-(x:Entity)
  WHERE x.namespace = $namespace AND e.namespace = x.namespace AND r.strength >= $min_strength
    AND (size($rel_types) = 0 OR any(name IN r.types WHERE name IN $rel_types))"""
_STANDS_IN = """
  MATCH (e:Entity {id: id})-[m:MENTIONED_IN]->(c:Chunk)
  WHERE c.namespace = $namespace AND e.namespace = c.namespace"""

# ADR-041 entity expansion, stage 2: the related entities of each entity, with the strength of the relation.
RELATED_ENTITIES = f"""
UNWIND $ids AS id
CALL (id) {{{_RELATED}
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}}
RETURN id, target, weight
"""

# ADR-041's entity→chunk expansion: the chunks that mention each entity. Python counts the matched entities of a
# chunk.
ENTITY_CHUNKS = f"""
UNWIND $ids AS id
CALL (id) {{{_STANDS_IN}
  RETURN collect(c.id) AS target, collect(m.weight) AS weight
}}
RETURN id, target, weight
"""

# The same in ADR-041's own words, to paste, for one question's `$entities`: full chunks by distinct matched entities.
ENTITY_SEARCH = f"""
UNWIND $entities AS id{_STANDS_IN}
WITH c, collect(DISTINCT e.name) AS matched_entities, count(DISTINCT e) AS entity_count
RETURN c.id AS id, c.content AS chunk_text, c.passage_id AS document_id, c.index AS chunk_index,
       matched_entities, entity_count
ORDER BY entity_count DESC, id LIMIT $top_k
"""

# A hop of hybrid GraphRAG: kind R as above; kind M, for each newly related entity, the chunks and counts of its
# mentions.
NEIGHBORHOOD_HOP = f"""
UNWIND $ids AS id
CALL (id) {{{_RELATED}
  RETURN collect(x.id) AS target, collect(r.strength) AS weight
}}
RETURN 'R' AS kind, id, target, weight
UNION ALL
UNWIND $ids AS id{_RELATED}
WITH collect(DISTINCT x.id) AS related
UNWIND related AS id
CALL (id) {{{_STANDS_IN}
  RETURN collect(c.id) AS target, collect(m.count) AS weight
}}
RETURN 'M' AS kind, id, target, weight
"""

# Entities' type, description, and the number of chunks that mention them.
ENTITY_CARDS = f"""
UNWIND $ids AS id
CALL (id) {{{_STANDS_IN}
  RETURN min(e.type) AS type, min(e.description) AS description, count(c) AS frequency
}}
RETURN id, type, description, frequency
"""

# Each entity's strongest relations with their wording, for the graph context block. `statements` have
# their subject and object; `forward` says whether the edge leads away from the entity, which is the direction
# of a relation in a graph that HopBench did not build (HopBench sorts the ends of an edge).
STRONGEST_RELATIONS = f"""
UNWIND $ids AS id
CALL (id) {{{_RELATED}
  WITH e, r, x ORDER BY r.strength DESC, x.id LIMIT $limit
  RETURN collect(x.id) AS target, collect(x.name) AS name, collect(r.strength) AS weight,
         collect(r.types) AS types, collect(r.description) AS description,
         collect(coalesce(r.statements, [])) AS statements, collect(startNode(r) = e) AS forward
}}
RETURN id, target, name, weight, types, description, statements, forward
"""

# The statements about pairs of entities ($pairs of {id, other_id}), a record per edge, without edges whose types are
# all `$usual`. `statements` and `forward` as above.
STATED = """
UNWIND $pairs AS p
MATCH (a:Entity {id: p.id})-[r:RELATED_TO]-(b:Entity {id: p.other_id})
WHERE b.namespace = $namespace AND a.namespace = b.namespace
  AND (size(coalesce(r.statements, [])) > 0 OR NOT any(name IN coalesce(r.types, []) WHERE name IN $usual))
RETURN p.id AS source, p.other_id AS target, r.strength AS weight, r.types AS types, r.description AS description,
       coalesce(r.statements, []) AS statements, startNode(r) = a AS forward
"""


# A hop of spreading activation. A frontier row has `chunks` and `entities`, each a list of {id, activation}, the ids
# `visited` and, at the first level, the ids of the `seeds`. Part "seeds" says which of them exist and whether they
# have edges; part "edges" has the edges that could pass on more than $min_activation if all tags agreed, and those
# that lead back to visited nodes (they distinguish a dead end from a path that is too weak). `degree` counts only
# edges that pass the thresholds; $min_mention is 0 or, to leave MENTIONED_IN out, above 1, so that a hub's mentions
# need not be checked one by one.
ACTIVATION_HOP = """
UNWIND $frontier AS f
CALL (f) {
  UNWIND f.seeds AS id
  MATCH (c:Chunk {id: id})
  WITH id, c, c.namespace AS space
  WHERE space = $namespace
  WITH id, EXISTS {
    (c)-[r:SIMILAR_TO|MENTIONED_IN]-() WHERE r.similarity >= $min_similarity OR r.weight >= $min_mention
  } AS connected
  RETURN 'seeds' AS part, collect(id) AS source, collect(connected) AS degree, [] AS kind, [] AS target,
         [] AS weight, [] AS tags
UNION ALL
  UNWIND f.chunks AS n
  MATCH (c:Chunk {id: n.id})
  WITH f, n, c, COUNT {
    (c)-[r:SIMILAR_TO|MENTIONED_IN]-() WHERE r.similarity >= $min_similarity OR r.weight >= $min_mention
  } AS degree
  WITH f, n, c, degree, $min_activation * sqrt(degree) / n.activation AS least
  WHERE least < 1.0 OR degree <= size(f.visited)
  MATCH (c)-[r:SIMILAR_TO|MENTIONED_IN]-(d)
  WHERE (r.similarity >= $min_similarity OR r.weight >= $min_mention)
    AND (r.similarity > least OR r.weight > least OR $min_weight > least OR d.id IN f.visited)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(n.id) AS source, collect(degree) AS degree, collect(type(r)) AS kind,
         collect(d.id) AS target, collect(coalesce(r.similarity, r.weight)) AS weight,
         collect(CASE WHEN $tagged THEN coalesce(r.tags, []) ELSE [] END) AS tags
UNION ALL
  UNWIND f.entities AS n
  MATCH (c:Entity {id: n.id})
  WITH f, n, c, COUNT { (c)-[r:RELATED_TO]-() WHERE r.strength >= $min_strength }
       + CASE WHEN $min_mention > 1 THEN 0 ELSE COUNT { (c)-[:MENTIONED_IN]->() } END AS degree
  WITH f, n, c, degree, $min_activation * sqrt(degree) / n.activation AS least
  WHERE least < 1.0 OR degree <= size(f.visited)
  MATCH (c)-[r:RELATED_TO|MENTIONED_IN]-(d)
  WHERE (r.strength >= $min_strength OR r.weight >= $min_mention)
    AND (r.strength > least OR r.weight > least OR $min_weight > least OR d.id IN f.visited)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(n.id) AS source, collect(degree) AS degree, collect(type(r)) AS kind,
         collect(d.id) AS target, collect(coalesce(r.strength, r.weight)) AS weight,
         collect(CASE WHEN $tagged THEN coalesce(r.tags, []) ELSE [] END) AS tags
}
RETURN f.q AS q, part, source, degree, kind, target, weight, tags
"""

# The edges of ACTIVATION_HOP for any energies, which several trials share. $frontier has one row with the ids of
# `chunks` and `entities`; part "chunks" says which chunks exist.
ACTIVATION_EDGES = """
UNWIND $frontier AS f
CALL (f) {
  UNWIND f.chunks AS id
  MATCH (c:Chunk {id: id})
  WITH id, c.namespace AS space
  WHERE space = $namespace
  RETURN 'chunks' AS part, collect(id) AS source, [] AS kind, [] AS target, [] AS weight, [] AS tags
UNION ALL
  UNWIND f.chunks AS id
  MATCH (c:Chunk {id: id})-[r:SIMILAR_TO|MENTIONED_IN]-(d)
  WHERE (r.similarity >= $min_similarity OR r.weight >= $min_mention)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(id) AS source, collect(type(r)) AS kind, collect(d.id) AS target,
         collect(coalesce(r.similarity, r.weight)) AS weight, collect(coalesce(r.tags, [])) AS tags
UNION ALL
  UNWIND f.entities AS id
  MATCH (c:Entity {id: id})-[r:RELATED_TO|MENTIONED_IN]-(d)
  WHERE (r.strength >= $min_strength OR r.weight >= $min_mention)
    AND d.namespace = $namespace AND c.namespace = d.namespace
  RETURN 'edges' AS part, collect(id) AS source, collect(type(r)) AS kind, collect(d.id) AS target,
         collect(coalesce(r.strength, r.weight)) AS weight, collect(coalesce(r.tags, [])) AS tags
}
RETURN part, source, kind, target, weight, tags
"""

# One level of one seed to paste into a Neo4j browser (section 6.2 of the source on spreading activation): the engine
# computes the energies. $frontier is a list of {node_id, activation}. Strategies use ACTIVATION_HOP instead.
ACTIVATION_PASTE = """
UNWIND $frontier AS f
MATCH (current:Node {id: f.node_id})
WITH current, current.namespace AS space, f.node_id AS parent_id, f.activation AS activation, COUNT {
  (current)-[e:SIMILAR_TO|RELATED_TO|MENTIONED_IN]-()
  WHERE e.similarity >= $min_similarity OR e.strength >= $min_strength OR e.weight >= $min_mention
} AS degree
WHERE space = $namespace
MATCH (current)-[r:SIMILAR_TO|RELATED_TO|MENTIONED_IN]-(neighbor)
WHERE (r.similarity >= $min_similarity OR r.strength >= $min_strength OR r.weight >= $min_mention)
  AND neighbor.namespace = $namespace AND NOT neighbor.id IN $visited_ids
WITH parent_id, r, neighbor, activation, degree, coalesce(r.tags, []) AS eTags,
     coalesce(r.similarity, r.strength, r.weight) AS stored
WITH parent_id, r, neighbor, activation, degree, eTags,
     CASE WHEN stored > $min_weight THEN stored ELSE $min_weight END AS weight,
     size([t IN eTags WHERE t IN $query_tags]) AS inter_count
WITH parent_id, r, neighbor, activation, degree, weight,
     CASE
       WHEN $query_tags_count = 0 THEN 1.0
       WHEN size(eTags) = 0 THEN $tag_sim_floor
       ELSE $tag_sim_floor
            + (1.0 - $tag_sim_floor) * toFloat(inter_count) / (size(eTags) + $query_tags_count - inter_count)
     END AS tag_sim
WITH parent_id, r, neighbor, weight, (activation * weight / sqrt(toFloat(degree))) * tag_sim AS transfer_energy
WHERE transfer_energy > $min_threshold
RETURN parent_id, neighbor.id AS neighbor_id, labels(neighbor) AS neighbor_labels, type(r) AS edge_type, weight,
       transfer_energy
ORDER BY parent_id, transfer_energy DESC, neighbor_id
"""


@dataclass(frozen=True)
class Part:
    """A match over the whole graph: its pattern, entry node (variable and label), and what it returns for each match.

    A server can be queried by ranges of the entry node's ids, so that it need not collect millions of values for one
    answer.
    """

    pattern: str
    node: str
    label: str
    returned: str
    condition: str = ""

    def text(self, ids: str = "", hint: str = "") -> str:
        """The query; `ids` is a condition on the entry node's id, `hint` the index to use."""
        conditions = " AND ".join(filter(None, (f"{self.node}.namespace = $namespace", ids, self.condition)))
        return f"MATCH {self.pattern}{hint} WHERE {conditions}\nRETURN {self.returned}"

    def page(self) -> str:
        """The query for the entry nodes with ids above `$after` and at most `$until`."""
        hint = f" USING INDEX SEEK {self.node}:{self.label}(namespace, id)"
        return self.text(f"{self.node}.id > $after AND {self.node}.id <= $until", hint)


def _over(kind: str, returned: str, condition: str = "") -> Part:
    source, target = EDGE_TYPES[kind][:2]
    pattern = f"(a:{source})-[r:{kind}]->(b:{target})"
    return Part(pattern, "b", target, returned, f"a.namespace = b.namespace{condition}")


def _lists(kind: str, columns: str, condition: str = "") -> Part:
    return _over(kind, f"'{kind}' AS kind, collect(a.id) AS source, collect(b.id) AS target, {columns}", condition)


_TABLES = {
    **{
        label: Part(f"(n:{label})", "n", label, ", ".join(f"n.{name} AS `{name}`" for name in columns))
        for label, columns in NODE_COLUMNS.items()
    },
    **{
        kind: _over(kind, ", ".join(("a.id AS source", "b.id AS target", *(f"r.{n} AS `{n}`" for n in edges.columns))))
        for kind, edges in EDGE_TYPES.items()
    },
}
_ADJACENCY = tuple(_lists(kind, f"collect({_weight(kind)}) AS weight") for kind in WALKED)
_NAMES = (
    Part(
        "(e:Entity)",
        "e",
        ENTITY,
        "'Entity' AS kind, collect(e.id) AS id, collect(e.name) AS name, collect(e.type) AS type, "
        "collect(e.aliases) AS aliases",
    ),
    Part(
        "(d:Document)-[:CONTAINS]->(c:Chunk)",
        "c",
        CHUNK,
        "'Document' AS kind, collect(c.id) AS id, collect(d.title) AS name, [] AS type, [] AS aliases",
        "d.namespace = c.namespace",
    ),
)
_RELATIONS = (
    _lists(
        RELATED_TO,
        "collect(r.types) AS types, collect(r.strength) AS weight",
        " AND any(name IN r.types WHERE NOT name IN $usual)",
    ),
)
_DESCRIPTIONS = (
    Part(
        "(e:Entity)",
        "e",
        ENTITY,
        "'Entity' AS kind, collect(e.id) AS source, [] AS target, [] AS types, "
        "collect(coalesce(e.description, '')) AS description",
    ),
    _lists(RELATED_TO, "collect(r.types) AS types, collect(coalesce(r.description, '')) AS description"),
)


def _union(parts: tuple[Part, ...]) -> str:
    return "\nUNION ALL\n".join(part.text() for part in parts)


BUILD_RECORD = "MATCH (b:Build) WHERE b.namespace = $namespace RETURN b.record AS record"
EXPORTS: Mapping[str, str] = {name: part.text() for name, part in _TABLES.items()}
"""Node label or edge type → the query for all of its rows, with the columns of the schema."""

# The whole adjacency as parallel lists, a record per edge type: for strategies that walk the graph as a matrix.
ADJACENCY = _union(_ADJACENCY)
# All names of entities and all titles as parallel lists, against which questions are matched.
NAMES = _union(_NAMES)
# Relations with a type not in `$usual`, as parallel lists.
RELATIONS = _union(_RELATIONS)
# The wording of entities (source) and relations (source, target) as parallel lists, which communities are embedded by.
DESCRIPTIONS = _union(_DESCRIPTIONS)

PARTS: Mapping[str, tuple[Part, ...]] = {
    ADJACENCY: _ADJACENCY,
    NAMES: _NAMES,
    RELATIONS: _RELATIONS,
    DESCRIPTIONS: _DESCRIPTIONS,
    **{EXPORTS[name]: (part,) for name, part in _TABLES.items()},
}
"""Query over the whole graph → its matches."""

"""Document 3's spreading activation: a hop, the edges that trials share, and the query to paste into a browser."""

from __future__ import annotations

# Document 3's hop. A frontier row has `chunks` and `entities`, each a list of {id, activation}, the ids `visited` and,
# at the first level, the ids of the `seeds`. Part "seeds" says which of them exist and whether they have edges; part
# "edges" gives the edges that could pass more than $min_activation on if all tags agreed, and those that lead back to
# what is visited (they tell a dead end from a path too weak). `degree` counts only edges that pass the thresholds;
# $min_mention is 0 or, to leave MENTIONED_IN out, above 1, so that a hub's mentions need not be looked at one by one.
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

# What ACTIVATION_HOP reads, whatever the energies: for trials that share it. $frontier has one row with the ids of
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

# Document 3's section 6.2 as a person pastes it into a Neo4j browser for one level of one seed: the energies are
# computed by the engine. $frontier is a list of {node_id, activation}. Strategies use ACTIVATION_HOP instead.
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

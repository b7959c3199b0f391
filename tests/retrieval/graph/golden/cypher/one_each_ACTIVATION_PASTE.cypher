UNWIND $frontier AS f
MATCH (current:Node {id: f.node_id})
WITH current, current.namespace AS space, f.node_id AS parent_id, f.activation AS activation, COUNT { MATCH (current)-[any_e:SIMILAR_TO|RELATED_TO|MENTIONED_IN]-(other) WHERE current <> other AND (any_e.similarity >= $min_similarity OR any_e.strength >= $min_strength OR any_e.weight >= $min_mention) RETURN DISTINCT other } AS degree
WHERE space = $namespace
CALL (current) { MATCH (current)-[each_r:SIMILAR_TO|RELATED_TO|MENTIONED_IN]-(neighbor) WHERE current <> neighbor
    RETURN neighbor, {similarity: max(each_r.similarity), strength: max(each_r.strength), weight: max(each_r.weight), tags: reduce(all = [], some IN collect(coalesce(each_r.tags, [])) | all + [name IN some WHERE NOT name IN all]), kind: max(type(each_r))} AS r }
  WITH * WHERE (r.similarity >= $min_similarity OR r.strength >= $min_strength OR r.weight >= $min_mention)
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
RETURN parent_id, neighbor.id AS neighbor_id, labels(neighbor) AS neighbor_labels, r.kind AS edge_type, weight,
       transfer_energy
ORDER BY parent_id, transfer_energy DESC, neighbor_id

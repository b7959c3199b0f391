"""The function that answers each query of `cypher` over an `ArrayGraph`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, NODE_COLUMNS
from hopbench.retrieval.graph.stores.arrays import activation, hops, whole, wording
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph
from hopbench.retrieval.graph.stores.base import Record

QUERIES: Mapping[str, Callable[..., Iterator[Record]]] = {
    cypher.EXPANSION_HOP: hops.expansion_hop,
    cypher.ENTITY_NEIGHBOURS: hops.entity_neighbours,
    cypher.RELATED_ENTITIES: hops.related_entities,
    cypher.ENTITY_CHUNKS: hops.entity_chunks,
    cypher.NEIGHBORHOOD_HOP: hops.neighborhood_hop,
    cypher.ENTITY_CARDS: wording.entity_cards,
    cypher.STRONGEST_RELATIONS: wording.strongest_relations,
    cypher.STATED: wording.stated,
    cypher.ENTITY_SEARCH: wording.entity_search,
    cypher.ACTIVATION_HOP: activation.activation_hop,
    cypher.ACTIVATION_EDGES: activation.activation_edges,
    cypher.ADJACENCY: whole.adjacency,
    cypher.NAMES: whole.names,
    cypher.RELATIONS: whole.relations,
    cypher.DESCRIPTIONS: whole.descriptions,
}
EXPORTS: Mapping[str, Callable[[ArrayGraph], Iterator[list[Record]]]] = {
    **{cypher.export_nodes(label): partial(whole.record_parts, name=label) for label in NODE_COLUMNS},
    **{cypher.export_edges(kind): partial(whole.record_parts, name=kind) for kind in EDGE_COLUMNS},
}

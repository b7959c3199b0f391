"""The function that answers each query of `cypher` over an `ArrayGraph`, and those that read the whole graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_TYPES,
    ENTITY,
    NODE_COLUMNS,
    RELATED_TO,
    WEIGHT_OF,
)
from hopbench.retrieval.graph.stores.arrays import hops
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph, Ints, Lists
from hopbench.retrieval.graph.stores.base import Record

PART_ROWS = 100_000


def adjacency(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.ADJACENCY`."""
    for kind in sorted(WEIGHT_OF):
        edges = graph.edges[kind]
        if len(edges):
            yield {"kind": kind, **_ends(graph, kind, np.arange(len(edges))), "weight": edges.weights.tolist()}


def names(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.NAMES`."""
    entities, contained = graph.nodes[ENTITY], graph.edges[CONTAINS]
    if len(entities):
        every = np.arange(len(entities))
        columns = {name: entities.columns[name].many(every) for name in ("id", "name", "type", "aliases")}
        yield {"kind": ENTITY, **columns}
    if len(contained):
        titles = graph.nodes[DOCUMENT].columns["title"].many(contained.source.astype(np.int64))
        yield {"kind": DOCUMENT, "id": graph.ids(CHUNK, contained.target), "name": titles, "type": [], "aliases": []}


def relations(graph: ArrayGraph, *, usual: Sequence[str]) -> Iterator[Record]:
    """`cypher.RELATIONS`."""
    edges = graph.edges[RELATED_TO]
    types = edges.columns["types"]
    rows = types.with_others(usual) if isinstance(types, Lists) else np.zeros(0, np.int64)
    if len(rows):
        worded = {"types": types.many(rows), "weight": edges.weights[rows].tolist()}
        yield {"kind": RELATED_TO, **_ends(graph, RELATED_TO, rows), **worded}


def descriptions(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.DESCRIPTIONS`."""
    entities, edges = graph.nodes[ENTITY], graph.edges[RELATED_TO]
    if len(entities):
        every = np.arange(len(entities))
        texts = [text or "" for text in entities.columns["description"].many(every)]
        yield {"kind": ENTITY, "source": graph.ids(ENTITY, every), "target": [], "types": [], "description": texts}
    if len(edges):
        every = np.arange(len(edges))
        texts = [text or "" for text in edges.columns["description"].many(every)]
        worded = {"types": edges.columns["types"].many(every), "description": texts}
        yield {"kind": RELATED_TO, **_ends(graph, RELATED_TO, every), **worded}


def table_parts(graph: ArrayGraph, name: str) -> Iterator[dict[str, list[Any]]]:
    """The table of a label or edge type in parts, an empty one if it has no rows, each by columns."""
    table = graph.nodes[name] if name in NODE_COLUMNS else graph.edges[name]
    for begin in range(0, max(len(table), 1), PART_ROWS):
        rows = np.arange(begin, min(begin + PART_ROWS, len(table)))
        ends = _ends(graph, name, rows) if name in EDGE_TYPES else {}
        yield {**ends, **{own: column.many(rows) for own, column in table.columns.items()}}


def _ends(graph: ArrayGraph, kind: str, rows: Ints) -> dict[str, list[Any]]:
    edges, (source, target, *_) = graph.edges[kind], EDGE_TYPES[kind]
    return {"source": graph.ids(source, edges.source[rows]), "target": graph.ids(target, edges.target[rows])}


QUERIES: Mapping[str, Callable[..., Iterator[Record]]] = {
    cypher.EXPANSION_HOP: hops.expansion_hop,
    cypher.ENTITY_NEIGHBOURS: hops.entity_neighbours,
    cypher.RELATED_ENTITIES: hops.related_entities,
    cypher.ENTITY_CHUNKS: hops.entity_chunks,
    cypher.NEIGHBORHOOD_HOP: hops.neighborhood_hop,
    cypher.ENTITY_CARDS: hops.entity_cards,
    cypher.STRONGEST_RELATIONS: hops.strongest_relations,
    cypher.STATED: hops.stated,
    cypher.ENTITY_SEARCH: hops.entity_search,
    cypher.ACTIVATION_HOP: hops.activation_hop,
    cypher.ACTIVATION_EDGES: hops.activation_edges,
    cypher.ADJACENCY: adjacency,
    cypher.NAMES: names,
    cypher.RELATIONS: relations,
    cypher.DESCRIPTIONS: descriptions,
}
TABLES: Mapping[str, str] = {query: name for name, query in cypher.EXPORTS.items()}
"""The queries for a whole table → the label or edge type."""

"""The function that answers each query of `cypher` over an `ArrayGraph`, and those that read the whole graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_COLUMNS,
    EDGE_ENDS,
    ENTITY,
    MENTIONED_IN,
    NODE_COLUMNS,
    RELATED_TO,
    SIMILAR_TO,
)
from hopbench.retrieval.graph.stores.arrays import activation, hops
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph, Ints, Lists
from hopbench.retrieval.graph.stores.base import Record

PART_ROWS = 100_000
Columns = dict[str, list[Any]]


def adjacency(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.ADJACENCY`."""
    for kind in (MENTIONED_IN, RELATED_TO, SIMILAR_TO):
        edges = graph.edges[kind]
        if len(edges):
            yield {"kind": kind, **_ends(graph, kind, slice(None)), "weight": edges.weights.tolist()}


def names(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.NAMES`."""
    entities = graph.nodes[ENTITY]
    if len(entities):
        every = np.arange(len(entities))
        columns = {name: entities.columns[name].many(every) for name in ("id", "name", "type", "aliases")}
        yield {"kind": ENTITY, **columns}
    contained = graph.edges[CONTAINS]
    if len(contained):
        titles = graph.nodes[DOCUMENT].columns["title"].many(np.asarray(contained.source, np.int64))
        yield {"kind": DOCUMENT, "id": graph.ids(CHUNK, contained.target), "name": titles, "type": [], "aliases": []}


def relations(graph: ArrayGraph, *, usual: Sequence[str]) -> Iterator[Record]:
    """`cypher.RELATIONS`."""
    edges = graph.edges[RELATED_TO]
    types = edges.columns["types"]
    own = types.with_others(usual) if isinstance(types, Lists) else np.zeros(0, np.int64)
    if len(own):
        yield {
            "kind": RELATED_TO,
            **_ends(graph, RELATED_TO, own),
            "types": edges.columns["types"].many(own),
            "weight": edges.weights[own].tolist(),
        }


def descriptions(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.DESCRIPTIONS`."""
    entities, edges = graph.nodes[ENTITY], graph.edges[RELATED_TO]
    if len(entities):
        every = np.arange(len(entities))
        texts = [text or "" for text in entities.columns["description"].many(every)]
        yield {"kind": ENTITY, "source": graph.ids(ENTITY, every), "target": [], "types": [], "description": texts}
    if len(edges):
        every = np.arange(len(edges))
        yield {
            "kind": RELATED_TO,
            **_ends(graph, RELATED_TO, slice(None)),
            "types": edges.columns["types"].many(every),
            "description": [text or "" for text in edges.columns["description"].many(every)],
        }


def table_parts(graph: ArrayGraph, name: str) -> Iterator[Columns]:
    """The table of a label or edge type in parts, each by columns."""
    if name in NODE_COLUMNS:
        nodes = graph.nodes[name]
        for rows in _parts(len(nodes)):
            yield {column: nodes.columns[column].many(rows) for column in NODE_COLUMNS[name]}
        return
    edges = graph.edges[name]
    for rows in _parts(len(edges)):
        yield {**_ends(graph, name, rows), **{own: edges.columns[own].many(rows) for own in EDGE_COLUMNS[name][2:]}}


def record_parts(graph: ArrayGraph, name: str) -> Iterator[list[Record]]:
    """`cypher.export_nodes` and `cypher.export_edges`, in parts."""
    for columns in table_parts(graph, name):
        yield [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _parts(count: int) -> Iterator[Ints]:
    """The numbers of rows in parts; an empty part where there are none."""
    for begin in range(0, max(count, 1), PART_ROWS):
        yield np.arange(begin, min(begin + PART_ROWS, count))


def _ends(graph: ArrayGraph, kind: str, rows: Ints | slice) -> dict[str, list[Any]]:
    edges, (source, target) = graph.edges[kind], EDGE_ENDS[kind]
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
    cypher.ACTIVATION_HOP: activation.activation_hop,
    cypher.ACTIVATION_EDGES: activation.activation_edges,
    cypher.ADJACENCY: adjacency,
    cypher.NAMES: names,
    cypher.RELATIONS: relations,
    cypher.DESCRIPTIONS: descriptions,
}
EXPORTS: Mapping[str, Callable[[ArrayGraph], Iterator[list[Record]]]] = {
    **{cypher.export_nodes(label): partial(record_parts, name=label) for label in NODE_COLUMNS},
    **{cypher.export_edges(kind): partial(record_parts, name=kind) for kind in EDGE_COLUMNS},
}

"""The queries of `cypher.hops` over an `ArrayGraph`: the same records, whatever order they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.graph import Around, ArrayGraph
from hopbench.retrieval.graph.stores.base import Record

Rows = dict[str, int]
Query = Callable[..., Iterator[Record]]


def expansion_hop(
    graph: ArrayGraph, *, ids: Sequence[str], min_similarity: float, min_strength: float
) -> Iterator[Record]:
    """`cypher.EXPANSION_HOP`."""
    chunks = known(graph, CHUNK, ids)
    for chunk in ids:
        similar = at_least(graph, CHUNK, chunks.get(chunk), SIMILAR_TO, min_similarity)
        yield _targets("S", chunk, graph.ids(CHUNK, similar.others), similar)
    entities: Rows = {}
    for chunk in ids:
        mentions = at_least(graph, CHUNK, chunks.get(chunk), MENTIONED_IN)
        names = graph.ids(ENTITY, mentions.others)
        entities.update(zip(names, mentions.others.tolist(), strict=True))
        yield _targets("E", chunk, names, mentions)
    related: Rows = {}
    for entity, row in entities.items():
        around = at_least(graph, ENTITY, row, RELATED_TO, min_strength)
        names = graph.ids(ENTITY, around.others)
        related.update(zip(names, around.others.tolist(), strict=True))
        yield _targets("R", entity, names, around)
    for entity, row in related.items():
        mentions = at_least(graph, ENTITY, row, MENTIONED_IN)
        yield _targets("M", entity, graph.ids(CHUNK, mentions.others), mentions)


def entity_neighbours(
    graph: ArrayGraph, *, frontier: Sequence[Mapping[str, Any]], min_strength: float
) -> Iterator[Record]:
    """`cypher.ENTITY_NEIGHBOURS`."""
    names = graph.nodes[ENTITY].columns["name"]
    for row in frontier:
        starts = known(graph, ENTITY, row["ids"])
        visited = np.array(list(known(graph, ENTITY, row["visited"]).values()), np.int64)
        ids = [id_ for id_ in row["ids"] if id_ in starts]
        own = names.many(np.array([starts[one] for one in ids], np.int64))
        if ids:
            yield {"q": row["q"], "part": "names", "source": ids, "target": [], "name": own, "weight": []}
        found: dict[str, list[Any]] = {"source": [], "target": [], "name": [], "weight": []}
        for start in ids:
            around = at_least(graph, ENTITY, starts[start], RELATED_TO, min_strength)
            new = around.where(~np.isin(around.others, visited))
            found["target"] += graph.ids(ENTITY, new.others)
            found["source"] += [start] * len(new.edges)
            found["name"] += names.many(new.others.astype(np.int64))
            found["weight"] += new.weights.tolist()
        if found["source"]:
            yield {"q": row["q"], "part": "edges", **found}


def related_entities(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str]
) -> Iterator[Record]:
    """`cypher.RELATED_ENTITIES`."""
    rows = known(graph, ENTITY, ids)
    for entity in ids:
        around = related(graph, rows.get(entity), min_strength, rel_types)
        yield {"id": entity, "target": graph.ids(ENTITY, around.others), "weight": around.weights.tolist()}


def entity_chunks(graph: ArrayGraph, *, ids: Sequence[str]) -> Iterator[Record]:
    """`cypher.ENTITY_CHUNKS`."""
    rows = known(graph, ENTITY, ids)
    for entity in ids:
        mentions = at_least(graph, ENTITY, rows.get(entity), MENTIONED_IN)
        yield {"id": entity, "target": graph.ids(CHUNK, mentions.others), "weight": mentions.weights.tolist()}


def neighborhood_hop(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str]
) -> Iterator[Record]:
    """`cypher.NEIGHBORHOOD_HOP`."""
    starts, reached = known(graph, ENTITY, ids), dict[str, int]()
    for entity in ids:
        around = related(graph, starts.get(entity), min_strength, rel_types)
        names = graph.ids(ENTITY, around.others)
        reached.update(zip(names, around.others.tolist(), strict=True))
        yield _targets("R", entity, names, around)
    counts = graph.edges[MENTIONED_IN].columns["count"]
    for entity, row in reached.items():
        mentions = at_least(graph, ENTITY, row, MENTIONED_IN)
        record = _targets("M", entity, graph.ids(CHUNK, mentions.others), mentions)
        yield {**record, "weight": counts.many(mentions.edges.astype(np.int64))}


def known(graph: ArrayGraph, label: str, ids: Sequence[str]) -> Rows:
    """The rows of those ids that are nodes of a label."""
    nodes = graph.nodes[label]
    return {id_: row for id_ in dict.fromkeys(ids) if (row := nodes.row(id_)) is not None}


def at_least(graph: ArrayGraph, label: str, row: int | None, kind: str, minimum: float | None = None) -> Around:
    """The edges of a type at a node that weigh `minimum` or more; none of an unknown node (None)."""
    if row is None:
        return NOTHING
    around = graph.around(label, row, kind)
    return around if minimum is None else around.where(around.weights >= minimum)


def related(graph: ArrayGraph, row: int | None, min_strength: float, rel_types: Sequence[str]) -> Around:
    """The relations of an entity at `min_strength` or above that have one of the types, if any is named."""
    around = at_least(graph, ENTITY, row, RELATED_TO, min_strength)
    if not rel_types:
        return around
    wanted = frozenset(rel_types)
    types = graph.edges[RELATED_TO].columns["types"].many(around.edges.astype(np.int64))
    mask: NDArray[np.bool_] = np.array([not wanted.isdisjoint(own) for own in types], np.bool_)
    return around.where(mask)


def _targets(kind: str, node: str, targets: list[str], around: Around) -> dict[str, Any]:
    return {"kind": kind, "id": node, "target": targets, "weight": around.weights.tolist()}


NOTHING = Around(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))

"""The queries of `cypher.hops` over an `ArrayGraph`: the same records, whatever order they come in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph, Gathered, Ints
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.support.arrays import among, distinct
from hopbench.retrieval.support.texts import TextsOfRows


def expansion_hop(
    graph: ArrayGraph, *, ids: Sequence[str], min_similarity: float, min_strength: float
) -> Iterator[Record]:
    """`cypher.EXPANSION_HOP`."""
    chunks = graph.nodes[CHUNK].rows(ids)
    similar = at_least(graph, CHUNK, chunks, SIMILAR_TO, min_similarity)
    mentions = at_least(graph, CHUNK, chunks, MENTIONED_IN)
    entities = far_ends(mentions)
    related_ = at_least(graph, ENTITY, entities, RELATED_TO, min_strength)
    reached = far_ends(related_)
    places = at_least(graph, ENTITY, reached, MENTIONED_IN)
    names = graph.nodes[ENTITY].ids
    for kind, far, found, sources in (
        ("S", CHUNK, similar, [ids[chunk] for chunk in similar.owners.tolist()]),
        ("E", ENTITY, mentions, [ids[chunk] for chunk in mentions.owners.tolist()]),
        ("R", ENTITY, related_, TextsOfRows(names, entities[related_.owners])),
        ("M", CHUNK, places, TextsOfRows(names, reached[places.owners])),
    ):
        if len(found.owners):  # who asks numbers the nodes by row: most of their ids nobody reads
            targets = TextsOfRows(graph.nodes[far].ids, found.around.others.astype(np.int64))
            yield {"kind": kind, "source": sources, "target": targets, "weight": found.around.weights.tolist()}


def entity_neighbours(
    graph: ArrayGraph, *, frontier: Sequence[Mapping[str, Any]], min_strength: float
) -> Iterator[Record]:
    """`cypher.ENTITY_NEIGHBOURS`, for all of the frontier in a few array operations."""
    entities = graph.nodes[ENTITY]
    nodes, visited = (listed(graph, ENTITY, [row[name] for row in frontier]) for name in ("ids", "visited"))
    found = at_least(graph, ENTITY, nodes.rows, RELATED_TO, min_strength)
    size = len(entities.ids)  # a pair of a row of the frontier and an entity is one number
    seen = distinct(visited.lists * size + visited.rows)
    found = found.where(~among(nodes.lists[found.owners] * size + found.around.others, seen))
    sources, names = [nodes.ids[node] for node in found.owners.tolist()], entities.columns["name"]
    own_names, others = names.many(nodes.rows), found.around.others.astype(np.int64)
    targets, target_names, weights = graph.ids(ENTITY, others), names.many(others), found.around.weights.tolist()
    parts = nodes.parts(len(frontier)), nodes.parts(len(frontier), found.owners)
    for row, node, edge in zip(frontier, *parts, strict=True):
        if nodes.ids[node]:
            named = {"source": nodes.ids[node], "target": [], "name": own_names[node], "weight": []}
            yield {"q": row["q"], "part": "names", **named}
        if targets[edge]:
            reached = {"source": sources[edge], "target": targets[edge], "name": target_names[edge]}
            yield {"q": row["q"], "part": "edges", **reached, "weight": weights[edge]}


class Listed(NamedTuple):
    """The known nodes of lists of ids, laid end to end: the number of each one's list, its id, row and place there."""

    lists: Ints
    ids: list[str]
    rows: Ints
    places: Ints

    def parts(self, lists: int, owners: Ints | None = None) -> Iterator[slice]:
        """Where the nodes of each of so many lists stand, or what these `owners`, ascending, have."""
        of = self.lists if owners is None else self.lists[owners]
        ends = of.searchsorted(np.arange(lists + 1)).tolist()
        return map(slice, ends, ends[1:])


def listed(graph: ArrayGraph, label: str, lists: Sequence[Sequence[str]]) -> Listed:
    """The nodes of a label in lists of ids."""
    ids = [one for each in lists for one in each]
    rows = graph.nodes[label].rows(ids)
    found = np.flatnonzero(rows >= 0)
    numbers = np.arange(len(lists)).repeat([len(each) for each in lists])
    return Listed(numbers[found], [ids[one] for one in found.tolist()], rows[found], found)


def related_entities(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str]
) -> Iterator[Record]:
    """`cypher.RELATED_ENTITIES`."""
    found = related(graph, graph.nodes[ENTITY].rows(ids), min_strength, rel_types)
    for record in _targets(graph, "R", ids, ENTITY, found):
        yield {name: record[name] for name in ("id", "target", "weight")}


def entity_chunks(graph: ArrayGraph, *, ids: Sequence[str]) -> Iterator[Record]:
    """`cypher.ENTITY_CHUNKS`."""
    found = at_least(graph, ENTITY, graph.nodes[ENTITY].rows(ids), MENTIONED_IN)
    for record in _targets(graph, "M", ids, CHUNK, found):
        yield {name: record[name] for name in ("id", "target", "weight")}


def neighborhood_hop(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str]
) -> Iterator[Record]:
    """`cypher.NEIGHBORHOOD_HOP`."""
    around = related(graph, graph.nodes[ENTITY].rows(ids), min_strength, rel_types)
    yield from _targets(graph, "R", ids, ENTITY, around)
    reached = far_ends(around)
    mentions = at_least(graph, ENTITY, reached, MENTIONED_IN)
    counts = graph.edges[MENTIONED_IN].columns["count"].many(mentions.around.edges.astype(np.int64))
    records = _targets(graph, "M", graph.ids(ENTITY, reached), CHUNK, mentions)
    for record, part in zip(records, mentions.parts(), strict=True):
        yield {**record, "weight": counts[part]}


def known(graph: ArrayGraph, label: str, ids: Sequence[str]) -> dict[str, int]:
    """The rows of those ids that are nodes of a label."""
    asked = list(dict.fromkeys(ids))
    return {id_: row for id_, row in zip(asked, graph.nodes[label].rows(asked).tolist(), strict=True) if row >= 0}


def at_least(graph: ArrayGraph, label: str, rows: Ints, kind: str, minimum: float | None = None) -> Gathered:
    """The edges of a type at nodes that weigh `minimum` or more; none of an unknown node (-1)."""
    found = graph.gathered(label, rows, kind)
    return found if minimum is None else found.where(found.around.weights >= minimum)


def related(graph: ArrayGraph, rows: Ints, min_strength: float, rel_types: Sequence[str]) -> Gathered:
    """The relations of entities at `min_strength` or above that have one of the types, if any is named."""
    found = at_least(graph, ENTITY, rows, RELATED_TO, min_strength)
    if not rel_types:
        return found
    wanted = frozenset(rel_types)
    types = graph.edges[RELATED_TO].columns["types"].many(found.around.edges.astype(np.int64))
    return found.where(np.array([not wanted.isdisjoint(own) for own in types], np.bool_))


def far_ends(found: Gathered) -> Ints:
    """The far ends of edges, each once, in the order of their first edges."""
    return np.array(list(dict.fromkeys(found.around.others.tolist())), np.int64)


def _targets(graph: ArrayGraph, kind: str, ids: Sequence[str], far: str, found: Gathered) -> Iterator[Record]:
    """A record for each node: its far ends, of a label, and the weights of its edges."""
    others, weights = found.around.others.astype(np.int64), found.around.weights.tolist()
    # Strategies know chunks by row: most of their ids nobody reads.
    targets = TextsOfRows(graph.nodes[far].ids, others) if far == CHUNK else graph.ids(far, others)
    for node, part in zip(ids, found.parts(), strict=True):
        yield {"kind": kind, "id": node, "target": targets[part], "weight": weights[part]}


def entity_cards(graph: ArrayGraph, *, ids: Sequence[str]) -> Iterator[Record]:
    """`cypher.ENTITY_CARDS`: an entity that no chunk mentions has neither type nor description."""
    rows, columns = graph.nodes[ENTITY].rows(ids), graph.nodes[ENTITY].columns
    frequencies = graph.gathered(ENTITY, rows, MENTIONED_IN).degrees
    # All texts of a column at once: the system reads their pages side by side.
    texts = {name: iter(columns[name].many(rows[frequencies > 0])) for name in ("type", "description")}
    for entity, frequency in zip(ids, frequencies.tolist(), strict=True):
        own = {name: next(values) if frequency else None for name, values in texts.items()}
        yield {"id": entity, **own, "frequency": frequency}


def strongest_relations(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str], limit: int
) -> Iterator[Record]:
    """`cypher.STRONGEST_RELATIONS`."""
    rows = graph.nodes[ENTITY].rows(ids)
    found = related(graph, rows, min_strength, rel_types)
    targets, weights = graph.ids(ENTITY, found.around.others), found.around.weights.tolist()
    best = [
        sorted(range(part.start, part.stop), key=lambda place: (-weights[place], targets[place]))[:limit]
        for part in found.parts()
    ]
    # All relations that are shown at once: the system reads the pages of their texts side by side.
    shown = np.array([place for places in best for place in places], np.int64)
    edges = found.around.edges[shown].astype(np.int64)
    columns = {
        "target": [targets[place] for place in shown.tolist()],
        "name": graph.nodes[ENTITY].columns["name"].many(found.around.others[shown].astype(np.int64)),
        "weight": found.around.weights[shown].tolist(),
        **_worded(graph, edges),
        "forward": (graph.edges[RELATED_TO].source[edges] == rows[found.owners[shown]]).tolist(),
    }
    end = 0
    for entity, places in zip(ids, best, strict=True):
        part = slice(end, end := end + len(places))
        yield {"id": entity, **{name: values[part] for name, values in columns.items()}}


def stated(graph: ArrayGraph, *, pairs: Sequence[Mapping[str, str]], usual: Sequence[str]) -> Iterator[Record]:
    """`cypher.STATED`."""
    rows = known(graph, ENTITY, [pair[name] for pair in pairs for name in ("id", "other_id")])
    for pair in pairs:
        first, second = rows.get(pair["id"]), rows.get(pair["other_id"])
        if first is None or second is None:
            continue
        around = graph.around(ENTITY, first, RELATED_TO)
        around = around.where(around.others == second)
        edges = around.edges.astype(np.int64)
        worded = _worded(graph, edges)
        for place, edge in enumerate(edges.tolist()):
            own = {name: values[place] for name, values in worded.items()}
            if own["statements"] or not any(name in usual for name in own["types"]):
                forward = bool(graph.edges[RELATED_TO].source[edge] == first)
                weight = float(around.weights[place])
                yield {"source": pair["id"], "target": pair["other_id"], "weight": weight, **own, "forward": forward}


def _worded(graph: ArrayGraph, edges: Ints) -> dict[str, list[Any]]:
    columns = graph.edges[RELATED_TO].columns
    return {name: columns[name].many(edges) for name in ("types", "description", "statements")}


def entity_search(graph: ArrayGraph, *, entities: Sequence[str], top_k: int) -> Iterator[Record]:
    """`cypher.ENTITY_SEARCH`."""
    matched: dict[int, set[int]] = {}
    for row in known(graph, ENTITY, entities).values():
        for chunk in graph.around(ENTITY, row, MENTIONED_IN).others.tolist():
            matched.setdefault(chunk, set()).add(row)
    ids = dict(zip(matched, graph.ids(CHUNK, list(matched)), strict=True))
    columns, names = graph.nodes[CHUNK].columns, graph.nodes[ENTITY].columns["name"]
    for chunk in sorted(matched, key=lambda row: (-len(matched[row]), ids[row]))[:top_k]:
        own = {name: columns[name].many(np.array([chunk]))[0] for name in ("content", "passage_id", "index")}
        found = sorted(matched[chunk])
        yield {
            "id": ids[chunk],
            "chunk_text": own["content"],
            "document_id": own["passage_id"],
            "chunk_index": own["index"],
            "matched_entities": list(dict.fromkeys(names.many(np.array(found, np.int64)))),
            "entity_count": len(found),
        }

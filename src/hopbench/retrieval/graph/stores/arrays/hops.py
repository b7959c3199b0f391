"""The hops of `cypher` over an `ArrayGraph`: the same records, whatever order they come in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopbench.retrieval.graph.schema import CHUNK, DOCUMENT_EDGES, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph, Gathered, Ints
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.support.arrays import among, distinct
from hopbench.retrieval.support.texts import TextsOfRows


def expansion_hop(
    graph: ArrayGraph, *, ids: Sequence[str], min_similarity: float, min_strength: float
) -> Iterator[Record]:
    """`cypher.EXPANSION_HOP`."""
    chunks, names = graph.nodes[CHUNK].rows(ids), graph.nodes[ENTITY].ids
    similar = graph.gathered(CHUNK, chunks, SIMILAR_TO, min_similarity)
    mentions = graph.gathered(CHUNK, chunks, MENTIONED_IN)
    entities = mentions.far_ends
    relations = graph.gathered(ENTITY, entities, RELATED_TO, min_strength)
    reached = relations.far_ends
    places = graph.gathered(ENTITY, reached, MENTIONED_IN)
    for kind, far, found, sources in (
        ("S", CHUNK, similar, [ids[chunk] for chunk in similar.owners.tolist()]),
        ("E", ENTITY, mentions, [ids[chunk] for chunk in mentions.owners.tolist()]),
        ("R", ENTITY, relations, TextsOfRows(names, entities[relations.owners])),
        ("M", CHUNK, places, TextsOfRows(names, reached[places.owners])),
    ):
        if len(found.owners):  # who asks numbers the nodes by row: most of their ids nobody reads
            targets = TextsOfRows(graph.nodes[far].ids, found.others)
            yield {"kind": kind, "source": sources, "target": targets, "weight": found.weights.tolist()}


def document_hop(graph: ArrayGraph, *, ids: Sequence[str]) -> Iterator[Record]:
    """`cypher.DOCUMENT_HOP`."""
    chunks = graph.nodes[CHUNK].rows(ids)
    for kind in DOCUMENT_EDGES:
        found = graph.gathered(CHUNK, chunks, kind)
        if len(found.owners):
            sources = [ids[chunk] for chunk in found.owners.tolist()]
            targets = TextsOfRows(graph.nodes[CHUNK].ids, found.others)
            yield {"kind": kind, "source": sources, "target": targets, "weight": found.weights.tolist()}


class Listed(NamedTuple):
    """The known nodes of lists of ids, laid end to end: the number of each one's list, its id, row and place there."""

    lists: Ints
    ids: list[str]
    rows: Ints
    places: Ints

    @classmethod
    def of(cls, graph: ArrayGraph, label: str, lists: Sequence[Sequence[str]]) -> Listed:
        """The nodes of a label in lists of ids."""
        ids = [one for each in lists for one in each]
        rows = graph.nodes[label].rows(ids)
        found = np.flatnonzero(rows >= 0)
        numbers = np.arange(len(lists)).repeat([len(each) for each in lists])
        return cls(numbers[found], [ids[one] for one in found.tolist()], rows[found], found)

    def parts(self, lists: int, owners: Ints | None = None) -> Iterator[slice]:
        """Where the nodes of each of so many lists stand, or what these `owners`, ascending, have."""
        ends = (self.lists if owners is None else self.lists[owners]).searchsorted(np.arange(lists + 1)).tolist()
        return map(slice, ends, ends[1:])


def entity_neighbours(
    graph: ArrayGraph, *, frontier: Sequence[Mapping[str, Any]], min_strength: float
) -> Iterator[Record]:
    """`cypher.ENTITY_NEIGHBOURS`, for all of the frontier in a few array operations."""
    entities = graph.nodes[ENTITY]
    nodes, visited = (Listed.of(graph, ENTITY, [row[name] for row in frontier]) for name in ("ids", "visited"))
    found = graph.gathered(ENTITY, nodes.rows, RELATED_TO, min_strength)
    size = len(entities)  # a pair of a row of the frontier and an entity is one number
    seen = distinct(visited.lists * size + visited.rows)
    found = found.where(~among(nodes.lists[found.owners] * size + found.others, seen))
    sources, names = [nodes.ids[node] for node in found.owners.tolist()], entities.columns["name"]
    own_names, target_names = names.many(nodes.rows), names.many(found.others)
    targets, weights = graph.ids(ENTITY, found.others), found.weights.tolist()
    parts = nodes.parts(len(frontier)), nodes.parts(len(frontier), found.owners)
    for row, node, edge in zip(frontier, *parts, strict=True):
        if nodes.ids[node]:
            named = {"source": nodes.ids[node], "target": [], "name": own_names[node], "weight": []}
            yield {"q": row["q"], "part": "names", **named}
        if targets[edge]:
            reached = {"source": sources[edge], "target": targets[edge], "name": target_names[edge]}
            yield {"q": row["q"], "part": "edges", **reached, "weight": weights[edge]}


def related_entities(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str]
) -> Iterator[Record]:
    """`cypher.RELATED_ENTITIES`."""
    found = _related(graph, graph.nodes[ENTITY].rows(ids), min_strength, rel_types)
    return _targets(graph, ids, ENTITY, found)


def entity_chunks(graph: ArrayGraph, *, ids: Sequence[str]) -> Iterator[Record]:
    """`cypher.ENTITY_CHUNKS`."""
    found = graph.gathered(ENTITY, graph.nodes[ENTITY].rows(ids), MENTIONED_IN)
    return _targets(graph, ids, CHUNK, found)


def neighborhood_hop(
    graph: ArrayGraph, *, ids: Sequence[str], min_strength: float, rel_types: Sequence[str]
) -> Iterator[Record]:
    """`cypher.NEIGHBORHOOD_HOP`."""
    around = _related(graph, graph.nodes[ENTITY].rows(ids), min_strength, rel_types)
    for record in _targets(graph, ids, ENTITY, around):
        yield {"kind": "R", **record}
    reached = around.far_ends
    mentions = graph.gathered(ENTITY, reached, MENTIONED_IN)
    counts = graph.edges[MENTIONED_IN].columns["count"].many(mentions.edges)
    records = _targets(graph, graph.ids(ENTITY, reached), CHUNK, mentions)
    for record, part in zip(records, mentions.parts(), strict=True):
        yield {"kind": "M", **record, "weight": counts[part]}


def _related(graph: ArrayGraph, rows: Ints, min_strength: float, rel_types: Sequence[str]) -> Gathered:
    """The relations of entities at `min_strength` or above that have one of the types, if any is named."""
    found = graph.gathered(ENTITY, rows, RELATED_TO, min_strength)
    if not rel_types:
        return found
    types = graph.edges[RELATED_TO].columns["types"].many(found.edges)
    return found.where(np.array([not set(rel_types).isdisjoint(own) for own in types], np.bool_))


def _targets(graph: ArrayGraph, ids: Sequence[str], far: str, found: Gathered) -> Iterator[Record]:
    """A record for each node: its far ends, of a label, and the weights of its edges."""
    weights = found.weights.tolist()
    # Strategies know chunks by row: most of their ids nobody reads.
    targets = TextsOfRows(graph.nodes[far].ids, found.others) if far == CHUNK else graph.ids(far, found.others)
    for node, part in zip(ids, found.parts(), strict=True):
        yield {"id": node, "target": targets[part], "weight": weights[part]}


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
    found = _related(graph, rows, min_strength, rel_types)
    targets, weights = graph.ids(ENTITY, found.others), found.weights.tolist()
    best = [
        sorted(range(part.start, part.stop), key=lambda place: (-weights[place], targets[place]))[:limit]
        for part in found.parts()
    ]
    # All relations that are shown at once: the system reads the pages of their texts side by side.
    shown = np.array([place for places in best for place in places], np.int64)
    columns = {
        "target": [targets[place] for place in shown.tolist()],
        "name": graph.nodes[ENTITY].columns["name"].many(found.others[shown]),
        "weight": found.weights[shown].tolist(),
        **_worded(graph, found.edges[shown], rows[found.owners[shown]]),
    }
    end = 0
    for entity, places in zip(ids, best, strict=True):
        part = slice(end, end := end + len(places))
        yield {"id": entity, **{name: values[part] for name, values in columns.items()}}


def stated(graph: ArrayGraph, *, pairs: Sequence[Mapping[str, str]], usual: Sequence[str]) -> Iterator[Record]:
    """`cypher.STATED`."""
    ends = [graph.nodes[ENTITY].rows([pair[name] for pair in pairs]) for name in ("id", "other_id")]
    found = graph.gathered(ENTITY, ends[0], RELATED_TO)
    found = found.where(found.others == ends[1][found.owners])
    worded = _worded(graph, found.edges, ends[0][found.owners])
    for place, (owner, weight) in enumerate(zip(found.owners.tolist(), found.weights.tolist(), strict=True)):
        own = {name: values[place] for name, values in worded.items()}
        if own["statements"] or not any(name in usual for name in own["types"]):
            pair = pairs[owner]
            yield {"source": pair["id"], "target": pair["other_id"], "weight": weight, **own}


def _worded(graph: ArrayGraph, edges: Ints, near: Ints) -> dict[str, list[Any]]:
    """The wording of relations, and whether they lead away from the entities `near`."""
    relations = graph.edges[RELATED_TO]
    worded = {name: relations.columns[name].many(edges) for name in ("types", "description", "statements")}
    return {**worded, "forward": (relations.source[edges] == near).tolist()}


# Label → its edge types with the label of their far ends, and the part of a frontier that has its nodes.
ACTIVATED: Mapping[str, tuple[tuple[str, str], ...]] = {
    CHUNK: ((SIMILAR_TO, CHUNK), (MENTIONED_IN, ENTITY)),
    ENTITY: ((RELATED_TO, ENTITY), (MENTIONED_IN, CHUNK)),
}
PARTS = ((CHUNK, "chunks"), (ENTITY, "entities"))


def activation_hop(
    graph: ArrayGraph,
    *,
    frontier: Sequence[Mapping[str, Any]],
    min_weight: float,
    min_activation: float,
    tagged: bool,
    **limits: float,
) -> Iterator[Record]:
    """`cypher.ACTIVATION_HOP`."""
    visited = {}
    for label in ACTIVATED:  # the list and the row of each node in one number, ascending
        seen = Listed.of(graph, label, [row["visited"] for row in frontier])
        visited[label] = distinct(seen.lists * len(graph.nodes[label]) + seen.rows)
    sizes = np.array([len(row["visited"]) for row in frontier])
    found = [_seeds(graph, frontier, limits)]
    for label, part in PARTS:
        nodes = Listed.of(graph, label, [[node["id"] for node in row[part]] for row in frontier])
        passing = _passing(graph, label, nodes.rows, limits)
        degrees = np.sum([own.degrees for own in passing], axis=0)
        energies = np.array([node["activation"] for row in frontier for node in row[part]], np.float64)[nodes.places]
        least = min_activation * np.sqrt(degrees) / energies
        enough = (least < 1.0) | (degrees <= sizes[nodes.lists])
        wanted = []
        for (_, far), own in zip(ACTIVATED[label], passing, strict=True):
            needed = least[own.owners]
            back = among(nodes.lists[own.owners] * len(graph.nodes[far]) + own.others, visited[far])
            passes = (min_weight > needed) | (own.weights > needed) | back
            wanted.append(own.where(passes & enough[own.owners]))
        found.append(_edges(graph, label, nodes, len(frontier), wanted, tagged, degrees))
    for row, *parts in zip(frontier, *found, strict=True):
        yield from ({"q": row["q"], **columns} for columns in parts if columns["source"])


def activation_edges(graph: ArrayGraph, *, frontier: Sequence[Mapping[str, Any]], **limits: float) -> Iterator[Record]:
    """`cypher.ACTIVATION_EDGES`."""
    for row in frontier:
        for label, part in PARTS:
            nodes = Listed.of(graph, label, [row[part]])
            if nodes.ids and label == CHUNK:
                yield {"part": "chunks", "source": nodes.ids, "kind": [], "target": [], "weight": [], "tags": []}
            (columns,) = _edges(graph, label, nodes, 1, _passing(graph, label, nodes.rows, limits), tagged=True)
            if columns["source"]:
                yield columns


def _seeds(
    graph: ArrayGraph, frontier: Sequence[Mapping[str, Any]], limits: Mapping[str, float]
) -> list[dict[str, Any]]:
    """For each row of the frontier its known seeds, and whether each has an edge that reaches the thresholds."""
    seeds = Listed.of(graph, CHUNK, [row["seeds"] for row in frontier])
    passing = _passing(graph, CHUNK, seeds.rows, limits)
    connected = np.any([own.degrees > 0 for own in passing], axis=0).tolist()
    nothing: dict[str, list[Any]] = {name: [] for name in ("kind", "target", "weight", "tags")}
    return [
        {"part": "seeds", "source": seeds.ids[part], "degree": connected[part], **nothing}
        for part in seeds.parts(len(frontier))
    ]


def _passing(graph: ArrayGraph, label: str, rows: Ints, limits: Mapping[str, float]) -> list[Gathered]:
    names = {SIMILAR_TO: "min_similarity", RELATED_TO: "min_strength", MENTIONED_IN: "min_mention"}
    return [graph.gathered(label, rows, kind, limits[names[kind]]) for kind, _ in ACTIVATED[label]]


def _edges(
    graph: ArrayGraph,
    label: str,
    nodes: Listed,
    lists: int,
    found: Sequence[Gathered],
    tagged: bool,
    degrees: Ints | None = None,
) -> list[dict[str, Any]]:
    """For each of the `lists` of nodes the edges at them as parallel lists; `found` has an element for each kind.

    With `degrees`, (nodes,), each edge has that of its node.
    """
    columns: list[dict[str, Any]] = [{"part": "edges"} for _ in range(lists)]
    for (kind, far), own in zip(ACTIVATED[label], found, strict=True):
        tags = graph.edges[kind].columns["tags"]
        values = {
            "source": [nodes.ids[owner] for owner in own.owners.tolist()],
            "kind": [kind] * len(own.owners),
            "target": graph.ids(far, own.others),
            "weight": own.weights.tolist(),
            "tags": tags.many(own.edges) if tagged else [[] for _ in own.owners],
        }
        if degrees is not None:
            values["degree"] = degrees[own.owners].tolist()
        for one, part in zip(columns, nodes.parts(lists, own.owners), strict=True):
            for name, column in values.items():
                one.setdefault(name, []).extend(column[part])
    return columns

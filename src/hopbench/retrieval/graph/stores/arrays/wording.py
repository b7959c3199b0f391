"""The queries about entities' and relations' wording over an `ArrayGraph`; see `cypher.hops`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO
from hopbench.retrieval.graph.stores.arrays.edges import Ints
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph
from hopbench.retrieval.graph.stores.arrays.hops import known, related
from hopbench.retrieval.graph.stores.base import Record


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

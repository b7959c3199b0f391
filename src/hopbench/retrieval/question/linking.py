"""The linker of a graph: its names, aliases and titles, read from the store once per index."""

from __future__ import annotations

from collections.abc import Mapping

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch, Index, Linker
from hopbench.retrieval.question.uncapitalised import uncapitalised
from hopbench.retrieval.types import Counters


def _linker(index: Index) -> Linker:
    """The linker of the index's graph, read once; from a file where the store's stamp says that it is of this graph."""

    def made() -> Linker:
        place = index.kept_of_graph()
        return _read(index) if place is None else place[0].linker(place[1], lambda: _read(index))

    return index.memo.get("names", made)


def _read(index: Index) -> Linker:
    # An engine returns no record for a label that the graph lacks.
    empty = {kind: {"id": (), "name": (), "type": (), "aliases": ()} for kind in ("Entity", "Document")}
    records = empty | {record["kind"]: record for record in index.store.read(cypher.NAMES)}
    entity, document = records["Entity"], records["Document"]
    names = list(zip(entity["id"], entity["name"], entity["type"], entity["aliases"], strict=True))
    titles = list(zip(document["id"], document["name"], strict=True))
    by_id = dict(zip(entity["id"], entity["name"], strict=True))
    return Linker(names, titles, uncapitalised(index, by_id), index.language)


def linker(batch: Batch, counters: Counters) -> Linker:
    """The linker of the batch's graph; its names are read once per index, and charged to each batch that uses it."""
    reader = _linker(batch.index)
    counters.round_trips += 1
    counters.rows += reader.read
    return reader


def entity_names(index: Index) -> Mapping[str, str]:
    """Entity id → name, for display."""
    return _linker(index).name_of

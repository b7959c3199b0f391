"""The linker of a graph: its names, aliases and titles, read from the store once per index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch, Index, Linker
from hopbench.retrieval.question.uncapitalised import uncapitalised
from hopbench.retrieval.types import Counters


@dataclass(frozen=True)
class _GraphNames:
    linker: Linker
    names: Mapping[str, str]
    rows: int


def _graph_names(index: Index) -> _GraphNames:
    """The graph's names, read once per index."""
    return index.memo.get("names", lambda: _read(index))


def _read(index: Index) -> _GraphNames:
    # An engine returns no record for a label that the graph lacks.
    empty = {kind: {"id": (), "name": (), "type": (), "aliases": ()} for kind in ("Entity", "Document")}
    records = empty | {record["kind"]: record for record in index.store.read(cypher.NAMES)}
    entity, document = records["Entity"], records["Document"]
    names = list(zip(entity["id"], entity["name"], entity["type"], entity["aliases"], strict=True))
    titles = list(zip(document["id"], document["name"], strict=True))
    by_id = dict(zip(entity["id"], entity["name"], strict=True))
    return _GraphNames(Linker(names, titles, uncapitalised(index, by_id)), by_id, len(names) + len(titles))


def linker(batch: Batch, counters: Counters) -> Linker:
    """The linker of the batch's graph; its names are read once per index, and charged to each batch that uses it."""
    names = _graph_names(batch.index)
    counters.round_trips += 1
    counters.rows += names.rows
    return names.linker


def entity_names(index: Index) -> Mapping[str, str]:
    """Entity id → name, for display."""
    return _graph_names(index).names

"""The wording of entities and relations that dual_level embeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import ENTITY, RELATED_TO
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.linking import entity_names
from hopbench.retrieval.types import Counters

VERSION = "wording-1"  # of what is kept in files
Pair = tuple[str, str]
K = TypeVar("K", str, tuple[str, str])


@dataclass(frozen=True, eq=False)
class Descriptions:
    """Wording of entities (by id) and of relations (by both ids, sorted), and how many rows were read for it."""

    entities: Mapping[str, str]
    relations: Mapping[Pair, str]
    rows: int


def descriptions(batch: Batch, counters: Counters) -> Descriptions:
    """The wording of entities and relations; read once per index, charged to each batch that uses it."""
    read = batch.index.memo.get("descriptions", lambda: _read(batch))
    counters.round_trips += 1
    counters.rows += read.rows
    return read


def _read(batch: Batch) -> Descriptions:
    store, name_of = batch.index.store, entity_names(batch.index)
    if isinstance(store, ArrayStore):
        entities, pairs = _MappedEntities(store.graph), _MappedRelations(store.graph, name_of)
        return Descriptions(entities, pairs, len(entities) + len(pairs))
    whole = cache(lambda: _whole(store, name_of))
    counted = batch.index.graph_arrays("wording-rows", VERSION, lambda: {"rows": np.array([whole().rows])})
    # What is embedded of the wording is kept as well: then nobody asks for it.
    return Descriptions(_Later(lambda: whole().entities), _Later(lambda: whole().relations), int(counted["rows"][0]))


def _whole(store: GraphStore, name_of: Mapping[str, str]) -> Descriptions:
    entities: dict[str, str] = {}
    relations: dict[Pair, str] = {}
    rows = 0
    for record in chain.from_iterable(store.read_parts(cypher.DESCRIPTIONS)):
        rows += len(record["source"])
        if record["kind"] == ENTITY:
            entities.update(zip(record["source"], record["description"], strict=True))
        else:
            columns = (record[name] for name in ("source", "target", "types", "description"))
            _add_relations(relations, zip(*columns, strict=True), name_of)
    return Descriptions(entities, relations, rows)


@dataclass(frozen=True, eq=False)
class _Later(Mapping[K, str]):
    """Texts that are read when the first of them is asked for."""

    read: Callable[[], Mapping[K, str]]

    def __getitem__(self, key: K) -> str:
        return self.read()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())


def _add_relations(
    texts: dict[Pair, str], edges: Iterable[tuple[str, str, Any, Any]], name_of: Mapping[str, str]
) -> None:
    """Add each pair's description, of edges (source, target, types, description).

    Where there is none (as in many mapped graphs), the types between the ends' names. Such an edge leads from subject
    to object, and several may join a pair; ours are one a pair, and described.
    """
    for source, target, types, description in edges:
        text = description or " ".join((name_of.get(source, source), *sorted(types), name_of.get(target, target)))
        pair = (source, target) if source < target else (target, source)
        texts[pair] = f"{texts[pair]}; {text}" if pair in texts else text


class _MappedEntities(Mapping[str, str]):
    """The descriptions of entities in arrays, each read when it is asked for: they take as much memory as the names."""

    def __init__(self, graph: ArrayGraph) -> None:
        self._nodes = graph.nodes[ENTITY]

    def __getitem__(self, entity: str) -> str:
        row = self._nodes.row(entity)
        if row is None:
            raise KeyError(entity)
        return self._nodes.columns["description"].many(np.array([row]))[0] or ""

    def __iter__(self) -> Iterator[str]:
        return (self._nodes.ids[row] for row in range(len(self)))

    def __len__(self) -> int:
        return len(self._nodes)


class _MappedRelations(Mapping[Pair, str]):
    """The wording of relations in arrays, read when it is asked for; `len` counts edges."""

    def __init__(self, graph: ArrayGraph, name_of: Mapping[str, str]) -> None:
        self._graph, self._name_of = graph, name_of
        self._edges, self._ids = graph.edges[RELATED_TO], graph.nodes[ENTITY].ids

    def __getitem__(self, pair: Pair) -> str:
        first, second = (self._graph.nodes[ENTITY].row(end) for end in pair)
        if first is None or second is None:
            raise KeyError(pair)
        around = self._graph.around(ENTITY, first, RELATED_TO)
        edges = np.sort(around.edges[around.others == second]).astype(np.int64)
        ends = ([self._ids[row] for row in rows[edges].tolist()] for rows in (self._edges.source, self._edges.target))
        worded = (self._edges.columns[name].many(edges) for name in ("types", "description"))
        texts: dict[Pair, str] = {}
        _add_relations(texts, zip(*ends, *worded, strict=True), self._name_of)
        return texts[pair]

    def __iter__(self) -> Iterator[Pair]:
        ends = zip(self._edges.source.tolist(), self._edges.target.tolist(), strict=True)
        pairs = (sorted((self._ids[source], self._ids[target])) for source, target in ends)
        return iter(dict.fromkeys((first, second) for first, second in pairs))

    def __len__(self) -> int:
        return len(self._edges)

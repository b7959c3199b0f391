"""The graph as sparse matrices, read from the store in one round trip and cached by the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    DOCUMENT_EDGES,
    EDGE_ENDS,
    ENTITY,
    MENTIONED_IN,
    RELATED_TO,
    SIMILAR_TO,
)
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Arrays, Batch, Index
from hopbench.retrieval.support.texts import SortedTexts
from hopbench.retrieval.types import Counters

VERSION = "adjacency-3"  # of the cached files
KINDS = MENTIONED_IN, RELATED_TO, SIMILAR_TO, *DOCUMENT_EDGES  # in the order of the matrices
CSR = "data", "indices", "indptr"  # in the order of scipy's constructor


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Weighted adjacency of a graph with n chunks and m entities, all CSR float64.

    `mentions` is (m, n) with the mention weights, `related` (m, m) and `similar` (n, n) symmetric with strength and
    similarity; so are the matrices of `documents`, by type of edge, whichever way an edge points. Chunks are in the
    index's order, entities sorted by id. `rows` is the number of edges read.
    """

    entities: SortedTexts
    mentions: sparse.csr_array
    related: sparse.csr_array
    similar: sparse.csr_array
    documents: Mapping[str, sparse.csr_array]
    rows: int

    @cached_property
    def between_chunks(self) -> sparse.csr_array:
        """Every edge between two chunks, (n, n); only the pattern means anything."""
        whole = self.similar
        for edges in self.documents.values():
            whole = sparse.csr_array(whole + edges) if edges.nnz else whole
        return whole

    @cached_property
    def entity_row(self) -> Mapping[str, int]:
        """Entity id → row."""
        return self.entities.row_of

    @cached_property
    def frequency(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The number of chunks that mention each entity, shape (m,)."""
        return np.diff(self.mentions.indptr).astype(np.int64)

    def mention_weight(self, entity: int, chunk: int) -> float:
        """The weight of a mention edge that exists, by its rows; ten times as fast as scipy's indexing."""
        begin, end = self.mentions.indptr[entity], self.mentions.indptr[entity + 1]
        chunks = self.mentions.indices[begin:end]
        return float(
            self.mentions.data[begin + chunks.searchsorted(chunks.dtype.type(chunk))]
        )  # another type would copy the array


def adjacency(batch: Batch, counters: Counters) -> Adjacency:
    """The graph's adjacency, read once per index and charged in full to each batch that uses it.

    It is cached in files that processes share if the store has a stamp.
    """
    index = batch.index

    def read() -> Adjacency:
        arrays = index.graph_arrays("adjacency", VERSION, lambda: _arrays(index))
        entities = SortedTexts(arrays["entities"], arrays["entities.ends"])
        sizes = {ENTITY: len(entities), CHUNK: len(index.row_of)}
        mentions, related, similar, *documents = (
            sparse.csr_array(tuple(arrays[f"{kind}.{part}"] for part in CSR), (sizes[near], sizes[far]))
            for kind, (near, far) in ((kind, EDGE_ENDS[kind]) for kind in KINDS)
        )
        return Adjacency(
            entities,
            mentions,
            related,
            similar,
            dict(zip(DOCUMENT_EDGES, documents, strict=True)),
            int(arrays["rows"][0]),
        )

    graph = index.memo.get("adjacency", read)
    counters.round_trips += 1
    counters.rows += graph.rows
    return graph


def mentioning(batch: Batch, entities: Sequence[str]) -> list[int]:
    """Count the chunks that mention each of a few entities; an array store reads only these."""
    store = batch.index.store
    if not isinstance(store, ArrayStore):
        graph = adjacency(batch, Counters())
        return [int(graph.frequency[graph.entity_row[one]]) if one in graph.entity_row else 0 for one in entities]
    rows = store.graph.nodes[ENTITY].rows(entities)
    mentions = store.graph.gathered(ENTITY, rows, MENTIONED_IN)
    return [len(np.unique(mentions.others[part])) for part in mentions.parts()]


def _arrays(index: Index) -> Arrays:
    """The matrices' parts, and the entities' ids as concatenated UTF-8 with their ends."""
    ids, edges = _edges_of_arrays(index.store.graph) if isinstance(index.store, ArrayStore) else _edges(index.store)
    order = sorted(range(len(ids[ENTITY])), key=ids[ENTITY].__getitem__)
    entity = np.zeros(len(order), np.int64)
    entity[order] = np.arange(len(order))
    number = {ENTITY: entity, CHUNK: np.fromiter((index.row_of[id_] for id_ in ids[CHUNK]), np.int64, len(ids[CHUNK]))}
    sizes = {ENTITY: len(order), CHUNK: len(index.row_of)}
    utf8, entity_ends = SortedTexts.arrays([ids[ENTITY][row] for row in order])
    rows = sum(len(weight) for _, _, weight in edges.values())
    arrays: dict[str, NDArray[Any]] = {"entities": utf8, "entities.ends": entity_ends, "rows": np.array([rows])}
    for kind, (source, target, weight) in edges.items():
        near, far = EDGE_ENDS[kind]
        matrix = _matrix(number[near][source], number[far][target], weight, (sizes[near], sizes[far]))
        if near == far:
            matrix = sparse.csr_array(matrix.maximum(matrix.T))
            matrix.sort_indices()
        arrays |= {f"{kind}.{part}": getattr(matrix, part) for part in CSR}
    return arrays


Edges = Mapping[str, tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]]
"""Edge type → the ends of all edges as integers, and their weights."""


def _edges(store: GraphStore) -> tuple[Mapping[str, Sequence[str]], Edges]:
    """Read edges from any engine, part by part; ids by label are numbered in order of appearance."""
    numbers: dict[str, dict[str, int]] = {ENTITY: {}, CHUNK: {}}
    parts: dict[str, list[tuple[NDArray[Any], ...]]] = {
        kind: [(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))] for kind in KINDS
    }
    for record in chain.from_iterable(store.read_parts(cypher.ADJACENCY)):
        ends = []
        for end, label in zip(("source", "target"), EDGE_ENDS[record["kind"]], strict=True):
            known = numbers[label]
            rows = (known.setdefault(id_, len(known)) for id_ in record[end])
            ends.append(np.fromiter(rows, np.int32, len(record[end])))
        parts[record["kind"]].append((*ends, np.array(record["weight"], np.float64)))
    edges: Any = {kind: tuple(map(np.concatenate, zip(*found, strict=True))) for kind, found in parts.items()}
    return {label: list(ids) for label, ids in numbers.items()}, edges


def _edges_of_arrays(graph: ArrayGraph) -> tuple[Mapping[str, Sequence[str]], Edges]:
    """Read edges from arrays, whose ends are rows already: of nodes, only the ids of connected entities are read."""
    number = np.zeros(len(graph.nodes[ENTITY]) + 1, np.int32)
    ends = {kind: (graph.edges[kind].source, graph.edges[kind].target) for kind in KINDS}
    for kind in KINDS:
        for label, rows in zip(EDGE_ENDS[kind], ends[kind], strict=True):
            if label == ENTITY:
                number[rows] = 1  # a mark for now; 20 times as fast as np.unique for millions
    used = np.flatnonzero(number)
    number[used] = np.arange(len(used))
    edges: Any = {}
    for kind in KINDS:
        pairs = zip(EDGE_ENDS[kind], ends[kind], strict=True)
        edges[kind] = (*(number[rows] if label == ENTITY else rows for label, rows in pairs), graph.edges[kind].weights)
    return {ENTITY: graph.ids(ENTITY, used), CHUNK: list(graph.nodes[CHUNK].ids)}, edges


def _matrix(
    row: NDArray[np.int64], column: NDArray[np.int64], weights: NDArray[np.float64], shape: tuple[int, int]
) -> sparse.csr_array:
    matrix = sparse.csr_array((weights, (row, column)), shape=shape)
    if matrix.nnz < len(weights):  # parallel edges, only in external graphs: the strongest counts
        order = np.argsort(-weights, kind="stable")
        unique, first = np.unique(row[order] * shape[1] + column[order], return_index=True)
        matrix = sparse.csr_array((weights[order][first], np.divmod(unique, shape[1])), shape=shape)
    matrix.sort_indices()
    return matrix

"""The graph as sparse matrices, read from the store in one round trip and cached by the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.index import Arrays, Batch, Index
from hopbench.retrieval.types import Counters

VERSION = "adjacency-1"  # of what is kept in files
CSR = "data", "indices", "indptr"  # in the order in which scipy takes them


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Weighted adjacency of a graph with n chunks and m entities, all CSR float64.

    `mentions` is (m, n) with the mention weights, `related` (m, m) and `similar` (n, n) symmetric with strength and
    similarity. Chunks are in the index's order, entities sorted by id. `rows` is how many edges were read.
    """

    entities: Sequence[str]
    mentions: sparse.csr_array
    related: sparse.csr_array
    similar: sparse.csr_array
    rows: int

    @cached_property
    def entity_row(self) -> Mapping[str, int]:
        """Entity id → row."""
        return {entity: row for row, entity in enumerate(self.entities)}

    @cached_property
    def frequency(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """In how many chunks each entity is mentioned, shape (m,)."""
        return np.diff(self.mentions.indptr).astype(np.int64)

    def mention_weight(self, entity: int, chunk: int) -> float:
        """The weight of a mention edge that exists, by its rows; ten times as fast as scipy's own indexing."""
        begin, end = self.mentions.indptr[entity], self.mentions.indptr[entity + 1]
        chunks = self.mentions.indices[begin:end]
        return float(self.mentions.data[begin + chunks.searchsorted(chunks.dtype.type(chunk))])  # else it is copied


def adjacency(batch: Batch, counters: Counters) -> Adjacency:
    """The graph's adjacency; read once per index, and charged to each batch that uses it as it would cost alone."""
    graph = batch.index.memo.get("adjacency", lambda: _read(batch))
    counters.round_trips += 1
    counters.rows += graph.rows
    return graph


def mentioning(batch: Batch, entities: Sequence[str]) -> list[int]:
    """In how many chunks each of a few entities is mentioned; mapped arrays are asked for these alone."""
    store = batch.index.store
    if not isinstance(store, ArrayStore):
        graph = adjacency(batch, Counters())
        return [int(graph.frequency[graph.entity_row[one]]) if one in graph.entity_row else 0 for one in entities]
    rows = store.graph.nodes[ENTITY].rows(entities).tolist()
    around = (store.graph.around(ENTITY, row, MENTIONED_IN).others if row >= 0 else () for row in rows)
    return [len(np.unique(others)) for others in around]


def _read(batch: Batch) -> Adjacency:
    store, chunk_row = batch.index.store, batch.index.row_of
    if isinstance(store, ArrayStore):
        return _mapped(batch.index, store)
    # An engine returns no record for a kind of edge that the graph lacks.
    nothing = {kind: {"source": (), "target": (), "weight": ()} for kind in (MENTIONED_IN, RELATED_TO, SIMILAR_TO)}
    records = nothing | {record["kind"]: record for record in store.read(cypher.ADJACENCY)}
    mentions, related = records[MENTIONED_IN], records[RELATED_TO]
    entities = sorted({*mentions["source"], *related["source"], *related["target"]})
    entity_row = {entity: row for row, entity in enumerate(entities)}

    def of(kind: str, rows: Mapping[str, int], columns: Mapping[str, int]) -> sparse.csr_array:
        source = [rows[id_] for id_ in records[kind]["source"]]
        target = [columns[id_] for id_ in records[kind]["target"]]
        return _matrix(source, target, records[kind]["weight"], (len(rows), len(columns)))

    return Adjacency(
        entities,
        of(MENTIONED_IN, entity_row, chunk_row),
        _symmetric(of(RELATED_TO, entity_row, entity_row)),
        _symmetric(of(SIMILAR_TO, chunk_row, chunk_row)),
        sum(len(record["source"]) for record in records.values()),
    )


def _mapped(index: Index, store: ArrayStore) -> Adjacency:
    """The same from arrays, kept in files of its own: the processes of a machine share them."""
    arrays = index.graph_arrays("adjacency", VERSION, lambda: _arrays(store, index.row_of))
    m, n = len(arrays["entities"]), len(index.row_of)

    def of(kind: str, shape: tuple[int, int]) -> sparse.csr_array:
        return sparse.csr_array(tuple(arrays[f"{kind}.{part}"] for part in CSR), shape)

    return Adjacency(
        store.node_ids(ENTITY, arrays["entities"]),
        of(MENTIONED_IN, (m, n)),
        of(RELATED_TO, (m, m)),
        of(SIMILAR_TO, (n, n)),
        int(arrays["rows"][0]),
    )


def _arrays(store: ArrayStore, chunk_row: Mapping[str, int]) -> Arrays:
    """The matrices' parts, and the entities' nodes. Edges have rows for ends: no text is made of them."""
    mentions, related, similar = (store.edge_rows(kind) for kind in (MENTIONED_IN, RELATED_TO, SIMILAR_TO))
    ends = mentions.source, related.source, related.target
    entity = np.zeros(max(int(rows.max(initial=-1)) for rows in ends) + 1, np.int64)
    for rows in ends:
        entity[rows] = 1  # a mark for now: a twentieth of what np.unique takes for millions
    used = np.flatnonzero(entity)
    ids = store.node_ids(ENTITY, used)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    entity[used[order]] = np.arange(len(used))
    chunk = np.fromiter((chunk_row[id_] for id_ in store.node_ids(CHUNK)), np.int64)
    m, n = len(used), len(chunk_row)
    matrices = {
        MENTIONED_IN: _matrix(entity[mentions.source], chunk[mentions.target], mentions.weight, (m, n)),
        RELATED_TO: _symmetric(_matrix(entity[related.source], entity[related.target], related.weight, (m, m))),
        SIMILAR_TO: _symmetric(_matrix(chunk[similar.source], chunk[similar.target], similar.weight, (n, n))),
    }
    parts = {f"{kind}.{part}": getattr(matrix, part) for kind, matrix in matrices.items() for part in CSR}
    edges = sum(len(one.source) for one in (mentions, related, similar))
    return {"entities": used[order], "rows": np.array([edges]), **parts}


def _matrix(
    row: Sequence[int] | NDArray[np.int64],
    column: Sequence[int] | NDArray[np.int64],
    weight: Sequence[float] | NDArray[np.float64],
    shape: tuple[int, int],
) -> sparse.csr_array:
    weights = np.asarray(weight, dtype=np.float64)
    matrix = sparse.csr_array((weights, (row, column)), shape=shape)
    if matrix.nnz < len(weights):  # parallel edges, which only a graph from elsewhere has: the strongest counts
        order = np.argsort(-weights, kind="stable")
        cells = np.array(row, np.int64)[order] * shape[1] + np.array(column, np.int64)[order]
        unique, first = np.unique(cells, return_index=True)
        places = np.divmod(unique, shape[1])
        matrix = sparse.csr_array((weights[order][first], places), shape=matrix.shape)
    matrix.sort_indices()
    return matrix


def _symmetric(matrix: sparse.csr_array) -> sparse.csr_array:
    both = sparse.csr_array(matrix.maximum(matrix.T))
    both.sort_indices()
    return both

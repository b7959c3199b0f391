"""The graph as sparse matrices, read from the store in one round trip and cached by the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import CHUNK, EDGE_ENDS, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore, EdgeRows
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Arrays, Batch, Index
from hopbench.retrieval.support.texts import SortedTexts
from hopbench.retrieval.types import Counters

VERSION = "adjacency-2"  # of the cached files
KINDS = MENTIONED_IN, RELATED_TO, SIMILAR_TO
CSR = "data", "indices", "indptr"  # in the order of scipy's constructor


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Weighted adjacency of a graph with n chunks and m entities, all CSR float64.

    `mentions` is (m, n) with the mention weights, `related` (m, m) and `similar` (n, n) symmetric with strength and
    similarity. Chunks are in the index's order, entities sorted by id. `rows` is the number of edges read.
    """

    entities: SortedTexts
    mentions: sparse.csr_array
    related: sparse.csr_array
    similar: sparse.csr_array
    rows: int

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
    """The graph's adjacency, read once per index and charged in full to each batch that uses it."""
    graph = batch.index.memo.get("adjacency", lambda: _read(batch.index))
    counters.round_trips += 1
    counters.rows += graph.rows
    return graph


def mentioning(batch: Batch, entities: Sequence[str]) -> list[int]:
    """Count the chunks that mention each of a few entities; an array store reads only these."""
    store = batch.index.store
    if not isinstance(store, ArrayStore):
        graph = adjacency(batch, Counters())
        return [int(graph.frequency[graph.entity_row[one]]) if one in graph.entity_row else 0 for one in entities]
    rows = store.graph.nodes[ENTITY].rows(entities).tolist()
    around = (store.graph.around(ENTITY, row, MENTIONED_IN).others if row >= 0 else () for row in rows)
    return [len(np.unique(others)) for others in around]


def _read(index: Index) -> Adjacency:
    """Read the adjacency, cached in files that processes share if the store has a stamp."""
    arrays = index.graph_arrays("adjacency", VERSION, lambda: _arrays(index))
    entities = SortedTexts(arrays["entities"], arrays["entities.ends"])
    m, n = len(entities), len(index.row_of)

    def of(kind: str, shape: tuple[int, int]) -> sparse.csr_array:
        return sparse.csr_array(tuple(arrays[f"{kind}.{part}"] for part in CSR), shape)

    return Adjacency(
        entities,
        of(MENTIONED_IN, (m, n)),
        of(RELATED_TO, (m, m)),
        of(SIMILAR_TO, (n, n)),
        int(arrays["rows"][0]),
    )


def _arrays(index: Index) -> Arrays:
    """The matrices' parts, and the entities' ids as concatenated UTF-8 with their ends."""
    ends = _mapped_ends(index.store) if isinstance(index.store, ArrayStore) else _ends(index.store)
    mentions, related, similar = (ends.edges[kind] for kind in KINDS)
    entity = np.zeros(len(ends.entities), np.int64)
    order = sorted(range(len(ends.entities)), key=ends.entities.__getitem__)
    entity[order] = np.arange(len(order))
    chunk = np.fromiter((index.row_of[id_] for id_ in ends.chunks), np.int64, len(ends.chunks))
    m, n = len(order), len(index.row_of)
    matrices = {
        MENTIONED_IN: _matrix(entity[mentions.source], chunk[mentions.target], mentions.weight, (m, n)),
        RELATED_TO: _symmetric(_matrix(entity[related.source], entity[related.target], related.weight, (m, m))),
        SIMILAR_TO: _symmetric(_matrix(chunk[similar.source], chunk[similar.target], similar.weight, (n, n))),
    }
    parts = {f"{kind}.{part}": getattr(matrix, part) for kind, matrix in matrices.items() for part in CSR}
    rows = sum(len(one.source) for one in (mentions, related, similar))
    utf8, entity_ends = SortedTexts.arrays([ends.entities[row] for row in order])
    return {"entities": utf8, "entities.ends": entity_ends, "rows": np.array([rows]), **parts}


class _Ends(NamedTuple):
    """All edges with integer ends, and the ids of entities and chunks by these integers."""

    entities: Sequence[str]
    chunks: Sequence[str]
    edges: Mapping[str, EdgeRows]


def _ends(store: GraphStore) -> _Ends:
    """Read edges from any engine, part by part; ids are numbered in order of appearance."""
    numbers: dict[str, dict[str, int]] = {ENTITY: {}, CHUNK: {}}
    parts: dict[str, list[EdgeRows]] = {kind: [] for kind in KINDS}
    for record in chain.from_iterable(store.read_parts(cypher.ADJACENCY)):
        source, target = (
            _numbered(record[end], numbers[label])
            for end, label in zip(("source", "target"), EDGE_ENDS[record["kind"]], strict=True)
        )
        parts[record["kind"]].append(EdgeRows(source, target, np.array(record["weight"], np.float64)))
    none = EdgeRows(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
    edges = {kind: EdgeRows(*map(np.concatenate, zip(none, *found, strict=True))) for kind, found in parts.items()}
    return _Ends(list(numbers[ENTITY]), list(numbers[CHUNK]), edges)


def _numbered(ids: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int32]:
    return np.fromiter((numbers.setdefault(id_, len(numbers)) for id_ in ids), np.int32, len(ids))


def _mapped_ends(store: ArrayStore) -> _Ends:
    """Read edges from arrays, whose ends are rows already, so that no strings are created."""
    edges = {kind: store.edge_rows(kind) for kind in KINDS}
    mentions, related = edges[MENTIONED_IN], edges[RELATED_TO]
    ends = mentions.source, related.source, related.target
    number = np.zeros(max(int(rows.max(initial=-1)) for rows in ends) + 1, np.int32)
    for rows in ends:
        number[rows] = 1  # a mark for now; 20 times as fast as np.unique for millions
    used = np.flatnonzero(number)
    number[used] = np.arange(len(used))
    return _Ends(
        store.node_ids(ENTITY, used),
        store.node_ids(CHUNK),
        {
            MENTIONED_IN: mentions._replace(source=number[mentions.source]),
            RELATED_TO: related._replace(source=number[related.source], target=number[related.target]),
            SIMILAR_TO: edges[SIMILAR_TO],
        },
    )


def _matrix(
    row: Sequence[int] | NDArray[np.int64],
    column: Sequence[int] | NDArray[np.int64],
    weight: Sequence[float] | NDArray[np.float64],
    shape: tuple[int, int],
) -> sparse.csr_array:
    weights = np.asarray(weight, dtype=np.float64)
    matrix = sparse.csr_array((weights, (row, column)), shape=shape)
    if matrix.nnz < len(weights):  # parallel edges, only in external graphs: the strongest counts
        order = np.argsort(-weights, kind="stable")
        cells = np.array(row, np.int64)[order] * shape[1] + np.array(column, np.int64)[order]
        unique, first = np.unique(cells, return_index=True)
        positions = np.divmod(unique, shape[1])
        matrix = sparse.csr_array((weights[order][first], positions), shape=matrix.shape)
    matrix.sort_indices()
    return matrix


def _symmetric(matrix: sparse.csr_array) -> sparse.csr_array:
    both = sparse.csr_array(matrix.maximum(matrix.T))
    both.sort_indices()
    return both

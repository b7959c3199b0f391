"""Dense search of a large corpus by faiss's graph of near vectors (HNSW) instead of among all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.candidates import Indices, blocks
from hopbench.retrieval.search.cells import coarse, load_fitted, save_fitted
from hopbench.retrieval.search.exact import TopRows, best_of, true_neighbours
from hopbench.retrieval.support.arrays import Lists, expand_ranges, mapped_array, rows_of

VERSION = "hnsw-2"  # every change of what is found gives it another name
LINKS, BREADTH_BUILT = 32, 100  # of each row; rows looked at for them
BREADTHS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)  # rows looked at by a search
DEPTHS = (3, 10, 100)  # results for which a breadth is chosen; more results take that of the last
RECALL = 0.98  # share of a sample's true nearest rows that must be found
LOW_RECALL = 0.95  # below this, a user is told of the cause and the remedy
INSERTED = 65_536  # rows at a time
GRAPH = "hnsw.faiss"
ROWS, STARTS = "rows.npy", "starts.npy"

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ApproximateSearch:
    """The graph of the distinct vectors of n rows, and by number of results how broadly it is searched.

    Vectors are on the coarse grid of `cells`, on which float32 products are exact: the same vectors give the same graph
    on every processor. Each distinct vector is linked once: faiss (1.15.1) links equal vectors to each other alone.
    What is found is ordered by exact cosines (Malkov and Yashunin, IEEE TPAMI 2020).

    `rows` are those of each vector, ascending. `breadths` and `recalls` are by `DEPTHS`; recall is the share of the
    nearest that a second sample of the vectors, as questions, finds.
    """

    graph: Any
    rows: Lists
    breadths: Mapping[int, int]
    recalls: Mapping[int, float]

    @classmethod
    def fit(cls, vectors: Floats) -> Self:
        """Link (n, d) unit vectors on the grid, and choose how broadly to search on a sample of them."""
        import faiss

        rows = _equal_rows(vectors)
        vectors = vectors if len(rows) == len(vectors) else rows_of(vectors, rows.values[rows.start[:-1]])
        graph: Any = faiss.index_factory(vectors.shape[1], f"HNSW{LINKS}_SQfp16", faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = BREADTH_BUILT
        graph.train(coarse(vectors[:1]))  # halves need no training, but faiss asks for it
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # several threads would link rows in the order in which they come
        try:
            for part in blocks(len(vectors), INSERTED):
                graph.add(coarse(vectors[part]))
        finally:
            faiss.omp_set_num_threads(threads)
        chooses, measures = (true_neighbours(vectors, DEPTHS[-1], -1.0, sample) for sample in (0, 1))
        breadths, recalls = {}, {}
        for depth in DEPTHS:
            enough = (each for each in BREADTHS if _recall(graph, vectors, chooses, depth, each) >= RECALL)
            breadths[depth] = next(enough, BREADTHS[-1])
            recalls[depth] = round(_recall(graph, vectors, measures, depth, breadths[depth]), 4)
        return cls(graph, rows, breadths, recalls)

    def __str__(self) -> str:
        shares = ", ".join(f"{recall:.3f} of the {depth} nearest" for depth, recall in self.recalls.items())
        found = f"dense search is approximate (HNSW): recall {shares}, on a sample of chunks"
        if min(self.recalls.values()) >= LOW_RECALL:
            return found
        return f"{found}: low, as where hundreds of chunks are nearly alike; --dense exact finds all"

    def save(self, folder: Path) -> None:
        """Write the graph into an empty folder."""
        save_fitted(folder / GRAPH, self.graph, breadths=self.breadths, recalls=self.recalls)
        np.save(folder / ROWS, self.rows.values)
        np.save(folder / STARTS, self.rows.start)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The graph that was saved, memory-mapped."""
        graph, tables = load_fitted(folder / GRAPH)
        return cls(graph, Lists(*(mapped_array(folder / name) for name in (ROWS, STARTS))), **tables)

    def top(self, questions: Floats, vectors: Floats, depth: int) -> list[TopRows]:
        """The best `depth` of the rows found for (q, d) question vectors; both on the grid."""
        breadth = self.breadths[next((each for each in DEPTHS if depth <= each), DEPTHS[-1])]
        tops = []
        for near, question in zip(_found(self.graph, questions, depth, breadth), questions, strict=True):
            entries, _ = expand_ranges(self.rows.start[near], self.rows.start[near + 1])
            tops.append(best_of(vectors, np.asarray(self.rows.values[entries], np.intp), question, depth))
        return tops


def _equal_rows(vectors: Floats) -> Lists:
    """The rows of each distinct vector on the coarse grid, in the order of their first ones."""
    numbers: dict[bytes, int] = {}
    of_row = np.empty(len(vectors), np.int64)
    for part in blocks(len(vectors)):
        near = coarse(vectors[part]) + np.float32(0.0)  # -0.0 is 0.0
        digests = (blake2b(row, digest_size=16).digest() for row in near)
        of_row[part] = [numbers.setdefault(digest, len(numbers)) for digest in digests]
    return Lists(of_row.argsort(kind="stable"), np.concatenate([[0], np.bincount(of_row).cumsum()]))


def _found(graph: Any, questions: Floats, depth: int, breadth: int) -> list[NDArray[np.intp]]:
    """Twice as many vectors as are asked for: products on the coarse grid order them roughly."""
    import faiss

    count = min(2 * depth + 20, graph.ntotal)
    if not len(questions) or not count:
        return [np.zeros(0, np.intp) for _ in questions]
    how = faiss.SearchParametersHNSW(efSearch=max(breadth, count))  # type: ignore[attr-defined]  # its stubs lack it
    _, rows = graph.search(coarse(questions), count, params=how)
    return [row[row >= 0].astype(np.intp) for row in rows]


def _recall(graph: Any, vectors: Floats, sample: tuple[Indices, Indices], depth: int, breadth: int) -> float:
    """The share of the `depth` nearest of a sample of (row, neighbour) that a search of this breadth finds."""
    rows, begins = np.unique(sample[0], return_index=True)
    found = _found(graph, vectors[rows], depth + 1, breadth)  # a row finds itself as well
    nearest = np.split(sample[1], begins[1:])
    shares = [np.isin(near[:depth], own).mean() for near, own in zip(nearest, found, strict=False) if len(near)]
    return float(np.mean(shares)) if shares else 1.0

"""Dense search of a large corpus by a graph of near vectors (HNSW) instead of among all rows.

HNSW (Malkov and Yashunin, IEEE TPAMI 2020) by faiss, over vectors on the coarse grid of `cells`, which half-precision
floats hold and on which float32 products are exact; one thread inserts, in the order of the rows. So the same vectors
give the same graph, and a question the same results, on every processor, whatever shares its batch. What is found is
scored and put in order by exact cosines.

Each distinct vector is in the graph once, and its rows are looked up: faiss (1.15.1) links equal vectors to each other
alone, so that hundreds of them (boilerplate passages) cut the graph, and a broader search does not mend it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.candidates import blocks
from hopbench.retrieval.search.cells import coarse
from hopbench.retrieval.search.exact import TopRows, best_of, true_neighbours
from hopbench.retrieval.support.arrays import Lists, expand_ranges, mapped_array, rows_of

VERSION = "hnsw-2"  # every change of what is found gives it another name
LINKS, BREADTH_BUILT = 32, 100  # of each row; rows looked at for them
BREADTHS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)  # rows looked at by a search
DEPTHS = (3, 10, 100)  # results for which a breadth is chosen; more results take that of the last
RECALL = 0.98  # share of a sample's true nearest rows that must be found
LOW_RECALL = 0.95  # below this, a user is told of the cause and the remedy
INSERTED = 65_536  # rows at a time
GRAPH, ABOUT = "hnsw.faiss", "about.json"
ROWS, STARTS = "rows.npy", "starts.npy"

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ApproximateSearch:
    """The graph of the distinct vectors of n rows, and by number of results how broadly it is searched.

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
        with _one_thread():
            for part in blocks(len(vectors), INSERTED):
                graph.add(coarse(vectors[part]))
        chosen, measured = (_Sample.of(vectors, sample) for sample in (0, 1))
        breadths = {depth: chosen.needed(graph, vectors, depth) for depth in DEPTHS}
        recalls = {depth: round(measured.recall(graph, vectors, depth, breadths[depth]), 4) for depth in DEPTHS}
        return cls(graph, rows, breadths, recalls)

    def __str__(self) -> str:
        shares = ", ".join(f"{recall:.3f} of the {depth} nearest" for depth, recall in self.recalls.items())
        found = f"dense search is approximate (HNSW): recall {shares}, on a sample of chunks"
        if min(self.recalls.values()) >= LOW_RECALL:
            return found
        return f"{found}: low, as where hundreds of chunks are nearly alike; --dense exact finds all"

    def save(self, folder: Path) -> None:
        """Write the graph into an empty folder."""
        import faiss

        faiss.write_index(self.graph, str(folder / GRAPH))
        about = {"breadths": dict(self.breadths), "recalls": dict(self.recalls)}
        (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
        np.save(folder / ROWS, self.rows.values)
        np.save(folder / STARTS, self.rows.start)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The graph that was saved, memory-mapped: processes that load the same one share its pages."""
        import faiss

        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        breadths, recalls = ({int(k): v for k, v in about[name].items()} for name in ("breadths", "recalls"))
        try:
            graph = faiss.read_index(str(folder / GRAPH), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:  # faiss's own, for a file that it cannot read
            raise ValueError(str(error)) from None
        rows = Lists(*(mapped_array(folder / name) for name in (ROWS, STARTS)))
        return cls(graph, rows, breadths, recalls)

    def top(self, questions: Floats, vectors: Floats, depth: int) -> list[TopRows]:
        """The best `depth` of the rows found for (q, d) question vectors; both on the grid."""
        breadth = self.breadths[next((each for each in DEPTHS if depth <= each), DEPTHS[-1])]
        found = _found(self.graph, questions, depth, breadth)
        return [
            best_of(vectors, self._rows_of(near), question, depth)
            for near, question in zip(found, questions, strict=True)
        ]

    def _rows_of(self, distinct: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows that have one of these vectors."""
        entries, _ = expand_ranges(self.rows.start[distinct], self.rows.start[distinct + 1])
        return np.asarray(self.rows.values[entries], np.intp)


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


class _Sample(NamedTuple):
    """Rows and, for each, its nearest other rows, best first."""

    rows: list[int]
    nearest: list[NDArray[np.intp]]

    @classmethod
    def of(cls, vectors: Floats, sample: int) -> Self:
        asked, nearest = true_neighbours(vectors, DEPTHS[-1], -1.0, sample)
        rows, begins = np.unique(asked, return_index=True)
        return cls(rows.tolist(), np.split(nearest, begins[1:]) if len(rows) else [])

    def needed(self, graph: Any, vectors: Floats, depth: int) -> int:
        """The least of `BREADTHS` that finds `RECALL` of the nearest; the last if none does."""
        return next((each for each in BREADTHS if self.recall(graph, vectors, depth, each) >= RECALL), BREADTHS[-1])

    def recall(self, graph: Any, vectors: Floats, depth: int, breadth: int) -> float:
        """The share of the `depth` nearest that a search of this breadth finds; 1 of none."""
        found = _found(graph, vectors[self.rows], depth + 1, breadth)  # a row finds itself as well
        shares = [
            np.isin(near[:depth], rows).mean() for near, rows in zip(self.nearest, found, strict=True) if len(near)
        ]
        return float(np.mean(shares)) if shares else 1.0


@contextmanager
def _one_thread() -> Iterator[None]:
    """Several threads would link rows in the order in which they come."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)

"""Rows of unit vectors in cells around centroids (k-means), and approximate search in the cells nearest to a query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.candidates import Floats, Indices, best_cells, blocks, exact_cosines
from hopbench.retrieval.search.exact import TopRows, dense_top
from hopbench.retrieval.support.arithmetic import row_lengths
from hopbench.retrieval.support.arrays import Lists, distinct

COARSE = 2.0**11
ROWS_PER_CELL = 32  # rows of the k-means sample for each centroid: more of them did not raise the recall
ROUNDS = 6
VERSION = "ivf-1"  # every change of the results gives it another name
MIN_ROWS = 20_000  # of fewer, exact search takes as long
CELLS_PER_ROOT = 4.0  # of n rows, 4·√n cells
DEPTHS = (3, 10, 60)  # results for which the cells to scan are counted; more results take those of the last
SAMPLE = 2000  # sample queries: half of them choose how many cells to scan, half measure the recall
RECALL = 0.95  # share of the sample's true nearest rows that must be found; 0.975 moved figures by 0.005 at most
SAME = 1.0 - 1e-6  # cosine of a vector with itself
QUERY_BATCH = 512  # queries whose rows are put in order at a time
INDEX, ABOUT = "ivf.faiss", "about.json"


@dataclass(frozen=True)
class Cells:
    """The `centroids` (c, d) of n rows, on a grid of 2⁻¹¹: there float32 products are exact on every processor."""

    centroids: Floats

    @classmethod
    def fit(cls, vectors: Floats, count: int) -> Cells:
        """`count` centroids of (n, d) unit vectors, by spherical k-means on rows at equal distances."""
        step = max(len(vectors) // (count * ROWS_PER_CELL), 1)
        sample = coarse(vectors[::step])
        centroids = sample[:: max(len(sample) // count, 1)][:count]
        for _ in range(ROUNDS):
            centroids = _moved(centroids, sample)
        return cls(centroids)

    def products(self, vectors: Floats) -> Floats:
        """How near each row is to each centroid (n, c), exactly."""
        return np.asarray(coarse(vectors) @ self.centroids.T)

    def own(self, vectors: Floats) -> Indices:
        """The cell of each row: the nearest centroid, the first of equals."""
        parts = [self.products(vectors[part]).argmax(axis=1) for part in blocks(len(vectors))]
        return np.concatenate(parts) if parts else np.zeros(0, np.intp)


def kth_best(products: NDArray[Any], k: int) -> NDArray[Any]:
    """The k-th largest value of each row, or the smallest where there are fewer: (n,)."""
    k = min(k, products.shape[1])
    return np.asarray(np.partition(products, -k, axis=1)[:, -k])


def coarse(vectors: Floats) -> Floats:
    """Vectors with each component rounded to a multiple of 2⁻¹¹, on which products in float32 are exact."""
    return np.asarray(np.rint(vectors * np.float32(COARSE)) / np.float32(COARSE), np.float32)


def _moved(centroids: Floats, sample: Floats) -> Floats:
    """Each centroid in the middle of the sample's rows that are nearest to it; one without any stays."""
    from scipy.sparse import csr_matrix

    sums: NDArray[Any] = np.zeros(centroids.shape)
    for part in blocks(len(sample)):
        own = (sample[part] @ centroids.T).argmax(axis=1)
        ones = csr_matrix((np.ones(len(own)), (own, np.arange(len(own)))), shape=(len(centroids), len(own)))
        sums += ones @ sample[part].astype(np.float64)  # multiples of 2⁻¹¹: exact in any order
    lengths = row_lengths(sums)[:, None]
    return coarse(np.divide(sums, lengths, out=centroids.astype(np.float64), where=lengths > 0).astype(np.float32))


def save_fitted(file: Path, index: Any, **tables: Mapping[int, float]) -> None:
    """Write a faiss index, and beside it the tables by number of results that were chosen and measured for it."""
    import faiss

    faiss.write_index(index, str(file))
    about = {name: dict(table) for name, table in tables.items()}
    file.with_name(ABOUT).write_text(json.dumps(about), encoding="utf-8")


def load_fitted(file: Path) -> tuple[Any, dict[str, dict[int, Any]]]:
    """What `save_fitted` wrote, memory-mapped: processes that load the same index share its pages."""
    import faiss

    about = json.loads(file.with_name(ABOUT).read_text(encoding="utf-8"))
    tables = {name: {int(depth): value for depth, value in table.items()} for name, table in about.items()}
    try:
        return faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC), tables
    except RuntimeError as error:  # faiss's own, for a file that it cannot read
        raise ValueError(str(error)) from None


class Queries(NamedTuple):
    """Query vectors (q, d), and for each, where given, rows to score beside those of its cells."""

    vectors: Floats
    rows: Sequence[Indices] = ()


@dataclass(frozen=True, eq=False)
class CellSearch:
    """An inverted file (Sivic and Zisserman, ICCV 2003) by faiss over `vectors` (n, d) on the coarse grid.

    The best rows of the cells nearest to a query are scored and ordered by exact cosines. `probes` is by `DEPTHS` how
    many cells a query scans, chosen on a sample of queries; `recalls` is the share of the nearest rows that another
    sample finds.
    """

    vectors: Floats
    centroids: Floats
    lists: Any
    probes: Mapping[int, int]
    recalls: Mapping[int, float]

    @classmethod
    def fit(cls, vectors: Floats, sample: Queries) -> Self:
        """Put (n, d) unit vectors on the grid into cells; `sample` is like the queries to come."""
        import faiss

        cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
        own, dimension = cells.own(vectors), vectors.shape[1]
        centroids = faiss.IndexFlatIP(dimension)
        centroids.add(cells.centroids)
        half = faiss.ScalarQuantizer.QT_fp16
        lists: Any = faiss.IndexIVFScalarQuantizer(
            centroids, dimension, len(cells.centroids), half, faiss.METRIC_INNER_PRODUCT, False
        )
        lists.train(coarse(vectors[:1]))  # halves need no training, but faiss asks for it
        for part in blocks(len(vectors)):
            numbers = np.arange(part.start, part.stop)
            arrays = coarse(vectors[part]), numbers, np.ascontiguousarray(own[part], np.int64)
            lists.add_core(len(numbers), *map(faiss.swig_ptr, arrays))
            lists.ntotal = part.stop
        chooses, measures = (Queries(sample.vectors[half::2], sample.rows[half::2]) for half in (0, 1))
        made = cls(vectors, cells.centroids, lists, {}, {})
        nearest = [
            top.rows[top.scores < SAME][: DEPTHS[-1]] for top in dense_top(chooses.vectors, vectors, DEPTHS[-1] + 1)
        ]
        made = replace(made, probes={depth: _probes(cells, own, chooses, nearest, depth) for depth in DEPTHS})
        true = dense_top(measures.vectors, vectors, DEPTHS[-1])
        return replace(made, recalls={depth: _share(made.top(measures, depth), true, depth) for depth in DEPTHS})

    def __str__(self) -> str:
        shares = ", ".join(f"{recall:.3f} of the {depth} nearest" for depth, recall in self.recalls.items())
        return f"recall {shares}, on a sample; {self.probes[DEPTHS[-1]]} of {len(self.centroids):,} cells scanned"

    def save(self, folder: Path) -> None:
        """Write the inverted file into an empty folder."""
        save_fitted(folder / INDEX, self.lists, probes=self.probes, recalls=self.recalls)

    @classmethod
    def load(cls, folder: Path, vectors: Floats) -> Self:
        """Load the inverted file of `vectors`, memory-mapped."""
        lists, tables = load_fitted(folder / INDEX)
        centroids = lists.quantizer.reconstruct_n(0, lists.nlist)
        return cls(vectors, centroids, lists, **tables)

    def top(self, queries: Queries, depth: int) -> list[TopRows]:
        """The best `depth` of the rows found for each query; of all rows beyond the last of `DEPTHS`."""
        if depth > DEPTHS[-1] or not len(queries.vectors):
            return dense_top(queries.vectors, self.vectors, depth)
        given = queries.rows or [np.zeros(0, np.intp)] * len(queries.vectors)
        tops: list[TopRows] = []
        for part in blocks(len(queries.vectors), QUERY_BATCH):
            vectors, size = queries.vectors[part], len(self.vectors)
            found, more = self._scan(vectors, depth), Lists.of(given[part])
            owner, place = np.nonzero(found >= 0)
            pairs = distinct(np.concatenate([owner * size + found[owner, place], more.owner * size + more.values]))
            owner, rows = np.divmod(pairs, size)
            owner, rows, values = best_cells(owner, rows, exact_cosines(vectors, owner, rows, self.vectors), depth)
            ends = owner.searchsorted(np.arange(len(vectors) + 1)).tolist()
            tops += [TopRows(rows[begin:end], np.asarray(values[begin:end])) for begin, end in pairwise(ends)]
        return tops

    def _scan(self, queries: Floats, depth: int) -> NDArray[np.int64]:
        """Some more than `depth` rows of the cells nearest to each query, (q, k), -1 where there are fewer.

        The cells are chosen here: of equally near ones faiss would choose by its kernel.
        """
        import faiss

        probes = self.probes[next((each for each in DEPTHS if depth <= each), DEPTHS[-1])]
        queries, count = coarse(queries), 2 * depth + 20
        near = queries @ self.centroids.T
        cells = _nearest_cells(near, probes)
        near = np.take_along_axis(near, cells, axis=1)
        products, rows = np.empty((len(queries), count), np.float32), np.empty((len(queries), count), np.int64)
        params: Any = faiss.IVFSearchParameters(nprobe=cells.shape[1])  # type: ignore[call-arg]  # its stubs lack it
        arrays = map(faiss.swig_ptr, (cells, near, products, rows))
        self.lists.search_preassigned_c(len(queries), faiss.swig_ptr(queries), count, *arrays, False, params)
        return rows


def _nearest_cells(near: Floats, count: int) -> NDArray[np.int64]:
    """The `count` cells with the greatest products (q, c), best first; of equal ones the first."""
    size = near.shape[1]
    count = min(count, size)
    keys = np.rint(near * np.float32(COARSE * COARSE)).astype(np.int64) * -size + np.arange(size)
    best = np.argpartition(keys, count - 1, axis=1)[:, :count]
    order = np.take_along_axis(keys, best, axis=1).argsort(axis=1)
    return np.ascontiguousarray(np.take_along_axis(best, order, axis=1), np.int64)


def _probes(cells: Cells, own: Indices, queries: Queries, nearest: Sequence[Indices], depth: int) -> int:
    """How many cells to scan so that `RECALL` of the `depth` nearest rows are found, those given with a query too."""
    given = queries.rows or [np.zeros(0, np.intp)] * len(queries.vectors)
    ranks = [np.ones(1, np.intp)]
    for products, rows, known in zip(cells.products(queries.vectors), nearest, given, strict=True):
        of_rows = products[own[rows[:depth]]]
        rank = (products > of_rows[:, None]).sum(axis=1) + 1
        ranks.append(np.where(np.isin(rows[:depth], known), 1, rank))
    ordered = np.sort(np.concatenate(ranks))
    return int(ordered[int(np.ceil(RECALL * len(ordered))) - 1])


def _share(found: Sequence[TopRows], true: Sequence[TopRows], depth: int) -> float:
    """The share of the true `depth` best rows that searches have found; a vector itself, where it asks, left out."""
    hits = [
        np.isin(best.rows[:depth][best.scores[:depth] < SAME], top.rows) for top, best in zip(found, true, strict=True)
    ]
    return round(float(np.concatenate([np.ones(1, bool), *hits]).mean()), 4)

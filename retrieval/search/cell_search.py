"""Search among rows of unit vectors without looking at all of them: those of the cells nearest to a question.

An inverted file (Sivic and Zisserman, ICCV 2003) whose cells are multiplied with all questions that look into them at
once. Each row is in two cells (`Cells.own_and_second`). What a question finds are the exactly best rows of its cells,
and which cells those are is decided by exact products (`cells`): the same on every processor and whatever shares its
batch. How many cells a question looks into is chosen on a sample of vectors that ask, by the recall that this gives,
and measured on another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.cell_recall import Asked, needed, ranks_of, share
from hopbench.retrieval.search.cells import COARSE, Cells, Floats, Indices, blocks, coarse, kth_best
from hopbench.retrieval.search.exact import TopRows, dense_top
from hopbench.retrieval.search.neighbours import Candidates
from hopbench.retrieval.search.topk import best_cells, exact_cosines, kth_at_least, set_cells
from hopbench.retrieval.support.blas import in_threads
from hopbench.retrieval.support.csr import Lists

VERSION = "cells-3"  # every change of what is found gives it another name
LEAST_ROWS = 200_000  # of fewer, looking at all saves less than a millisecond a question (docs/scale.md)
CELLS_PER_ROOT = 4.0  # of n rows, 4·√n cells: a fifth faster to ask than half as many, which are made in half the time
DEPTHS = (3, 10, 60)  # results for which the cells to look into are counted; more results take those of the last
QUESTIONS_AT_A_TIME = 256  # that a thread compares with the centroids
SAMPLE = 2000  # asking vectors: half of them choose, half measure
CELLS_AT_A_TIME = 64  # that a thread looks into before it offers what it has found
MAXIMA = 512  # of groups of cells, by which the nearest cells are known
_ARRAYS = ("starts", "rows", "steps", "second_starts", "second")


@dataclass(frozen=True, eq=False)
class CellSearch:
    """Rows of `vectors` (n, d) in c `cells`: cell i has `rows[starts[i] : starts[i + 1]]`.

    `steps` (n, d) are the vectors in the order of `rows`, in whole steps of 2⁻¹¹, which lie side by side where they are
    multiplied together and take half the memory. Cell i is the second one of the rows at the places
    `second[second_starts[i] : second_starts[i + 1]]` of that order. `probes` and `recalls` are by `DEPTHS`: into how
    many cells a question looks, and what share of the nearest rows it finds there.
    """

    vectors: Floats
    cells: Cells
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    steps: NDArray[np.int16]
    second_starts: NDArray[np.int64]
    second: NDArray[np.int32]
    probes: Mapping[int, int]
    recalls: Mapping[int, float]

    @classmethod
    def fit(cls, vectors: Floats, asking: Asked) -> Self:
        """Put (n, d) unit vectors on the grid into cells; `asking` is a sample of what will be searched for."""
        cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
        own, second = cells.own_and_second(vectors)
        rows, starts = _by_cell(own, len(cells.centroids))
        steps = np.empty(vectors.shape, np.int16)
        for part in blocks(len(rows)):
            steps[part] = coarse(vectors[rows[part]]) * np.float32(COARSE)
        twice = np.flatnonzero((own != second)[rows]).astype(np.int32)
        in_order, second_starts = _by_cell(second[rows[twice]], len(cells.centroids))
        ranks = {depth: ranks_of(cells, np.stack([own, second]), vectors, asking, depth) for depth in DEPTHS}
        probes = {depth: needed(each[::2]) for depth, each in ranks.items()}
        recalls = {depth: share(each[1::2], probes[depth]) for depth, each in ranks.items()}
        return cls(vectors, cells, starts, rows, steps, second_starts, twice[in_order], probes, recalls)

    @classmethod
    def of_arrays(cls, vectors: Floats, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The search that was kept as `arrays`."""
        probes, recalls = (dict(zip(DEPTHS, arrays[name].tolist(), strict=True)) for name in ("probes", "recalls"))
        parts = {name: arrays[name] for name in _ARRAYS}
        return cls(vectors, Cells(arrays["centroids"]), **parts, probes=probes, recalls=recalls)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the vectors as arrays by name."""
        return {
            "centroids": self.cells.centroids,
            **{name: getattr(self, name) for name in _ARRAYS},
            "probes": np.array([*self.probes.values()]),
            "recalls": np.array([*self.recalls.values()]),
        }

    def __str__(self) -> str:
        shares = ", ".join(f"{recall:.3f} of the {depth} nearest" for depth, recall in self.recalls.items())
        return f"recall {shares}, on a sample; {self.probes[DEPTHS[-1]]} of {len(self.starts) - 1:,} cells looked into"

    def top(self, asked: Asked, depth: int) -> list[TopRows]:
        """The best `depth` of the rows found for each question; of all rows beyond the last of `DEPTHS`."""
        if depth > DEPTHS[-1] or not len(asked.vectors):
            return dense_top(asked.vectors, self.vectors, depth)
        asking, rows = self._found(asked.vectors, depth)
        more = Lists.of(asked.rows)
        pairs = np.concatenate([asking * len(self.vectors) + rows, more.owner * len(self.vectors) + more.values])
        asking, rows = np.divmod(np.unique(pairs), len(self.vectors))
        exact = exact_cosines(asked.vectors, asking, rows, self.vectors)
        asking, rows, values = best_cells(asking, rows, exact, depth)
        ends = np.searchsorted(asking, np.arange(len(asked.vectors) + 1)).tolist()
        return [TopRows(rows[begin:end], np.asarray(values[begin:end])) for begin, end in pairwise(ends)]

    def _found(self, questions: Floats, depth: int) -> tuple[Indices, Indices]:
        """Who asks and rows, few more than the `depth` best of the cells that each looks into."""
        found = Candidates(self.vectors, depth, -np.inf, questions, error=_error(self.vectors.shape[1]))
        looks = self._cells_of(questions, self.probes[next(each for each in DEPTHS if depth <= each)])
        scaled = questions / np.float32(COARSE)
        wanted = np.flatnonzero(looks.any(axis=1))
        parts = [wanted[part] for part in blocks(len(wanted), CELLS_AT_A_TIME)]
        in_threads(lambda cells: self._look(found, scaled, looks, cells, depth), parts)
        return found.remaining()

    def _look(self, found: Candidates, scaled: Floats, looks: NDArray[np.bool_], cells: Indices, depth: int) -> None:
        """Offer each question what may be among its best in those of the `cells` that it looks into, `looks` (c, q)."""
        place, asking = set_cells(looks[cells])
        ends = place.searchsorted(np.arange(len(cells) + 1)).tolist()
        parts = []
        for cell, (begin, end) in zip(cells.tolist(), pairwise(ends), strict=True):
            who, places = asking[begin:end], self._places(cell)
            products = _products(self.steps.take(places, axis=0), scaled, who)
            at = np.flatnonzero(products >= _least(found, who, products, depth))
            row, which = np.divmod(at, len(who))
            parts.append((who[which], places[row], np.full(len(at), cell), products.ravel()[at]))
        asking, places, cell, near = map(np.concatenate, zip(*parts, strict=True))
        # Of a row's two cells, where the question looks into both, the first one offers it.
        first = self.starts.searchsorted(places, "right") - 1
        kept = (first == cell) | ~looks[first, asking]
        found.offer(asking[kept], self.rows[places[kept]], near[kept])

    def _cells_of(self, questions: Floats, count: int) -> NDArray[np.bool_]:
        """Into which cells each question looks, (c, q): the `count` nearest, and now and then the next."""
        looks = np.empty((len(self.cells.centroids), len(questions)), bool)

        def look(part: slice) -> None:
            near = self.cells.products(questions[part])
            looks[:, part] = (near >= kth_at_least(near, count, MAXIMA)).T

        in_threads(look, blocks(len(questions), QUESTIONS_AT_A_TIME))
        return looks

    def _places(self, cell: int) -> Indices:
        """The places of the rows of a cell, (r,): those whose first it is, then those whose second."""
        second = slice(*self.second_starts[cell : cell + 2].tolist())
        return np.concatenate([np.arange(*self.starts[cell : cell + 2].tolist()), self.second[second]])


def _products(steps: NDArray[np.int16], scaled: Floats, asking: Indices) -> Floats:
    """The products of some rows (r, d) with those of the questions that ask, (r, a), all in steps."""
    return np.asarray(steps.astype(np.float32) @ scaled.take(asking, axis=0).T)


def _least(found: Candidates, asking: Indices, products: Floats, depth: int) -> Floats:
    """What a row's product (r, a) must be to be offered; these say it to those who ask for the first time."""
    new = np.flatnonzero(found.least[asking] == -np.inf)
    if len(new) and len(products) >= depth:
        found.raise_least(asking[new], kth_best(products[:, new].T, depth))
    return np.asarray(found.least[asking])


def _by_cell(cells: Indices, count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows by cell (n,), each cell's in their order, and where each cell's begin (c + 1,)."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=count))])
    return np.argsort(cells, kind="stable").astype(np.int32), starts


def _error(dimension: int) -> float:
    """How far a product with a row in whole steps may be from that with the row: |difference| ≤ √d · half a step."""
    return float(dimension**0.5 * 0.5 / COARSE)

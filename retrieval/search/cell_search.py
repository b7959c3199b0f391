"""Search among rows of unit vectors without looking at all of them: those of the cells nearest to a question.

An inverted file (Sivic and Zisserman, ICCV 2003) whose cells are multiplied with all questions that look into them at
once. What a question finds are the exactly best rows of its cells, and which cells those are is decided by exact
products (`cells`): the same on every processor and whatever shares its batch. How many cells a question looks into is
chosen on a sample of vectors that ask, by the recall that this gives, and measured on another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.cells import COARSE, Cells, blocks, coarse, kth_best
from hopbench.retrieval.search.exact import TopRows, best_of, dense_top
from hopbench.retrieval.search.neighbours import Candidates
from hopbench.retrieval.search.topk import set_cells
from hopbench.retrieval.support.blas import one_blas_thread

VERSION = "cells-1"  # every change of what is found gives it another name
LEAST_ROWS = 200_000  # of fewer, looking at all saves less than a millisecond a question (docs/scale.md)
CELLS_PER_ROOT = 4.0  # of n rows, 4·√n cells: a fifth faster to ask than half as many, which are made in half the time
DEPTHS = (5, 60)  # results for which the cells to look into are counted; more results take those of the last
RECALL = 0.975  # share of the sample's true nearest rows that must be found
SAME = 1.0 - 1e-6  # cosine of a vector with itself
SAMPLE = 2000  # asking vectors: half of them choose, half measure
FIRST = 4  # cells from which a question learns how near its best rows are at least

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CellSearch:
    """Rows of `vectors` (n, d) in c `cells`: cell i has `rows[starts[i] : starts[i + 1]]`.

    `steps` (n, d) are the vectors in the order of `rows`, in whole steps of 2⁻¹¹, which lie side by side where they are
    multiplied together and take half the memory. `probes` and `recalls` are by `DEPTHS`: into how many cells a question
    looks, and what share of the nearest rows it finds there.
    """

    vectors: Floats
    cells: Cells
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    steps: NDArray[np.int16]
    probes: Mapping[int, int]
    recalls: Mapping[int, float]

    @classmethod
    def fit(cls, vectors: Floats, asking: Floats) -> Self:
        """Put (n, d) unit vectors on the grid into cells; `asking` (m, d) are a sample of what will be searched for."""
        cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
        own = cells.own(vectors)
        rows = np.argsort(own, kind="stable").astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=len(cells.centroids)))])
        steps = np.empty(vectors.shape, np.int16)
        for part in blocks(len(rows)):
            steps[part] = coarse(vectors[rows[part]]) * np.float32(COARSE)
        ranks = {depth: _ranks(cells, own, vectors, asking, depth) for depth in DEPTHS}
        probes = {depth: _needed(each[::2]) for depth, each in ranks.items()}
        recalls = {depth: _share(each[1::2], probes[depth]) for depth, each in ranks.items()}
        return cls(vectors, cells, starts, rows, steps, probes, recalls)

    @classmethod
    def of_arrays(cls, vectors: Floats, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The search that was kept as `arrays`."""
        probes, recalls = (dict(zip(DEPTHS, arrays[name].tolist(), strict=True)) for name in ("probes", "recalls"))
        starts, rows, steps = (arrays[name] for name in ("starts", "rows", "steps"))
        return cls(vectors, Cells(arrays["centroids"]), starts, rows, steps, probes, recalls)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the vectors as arrays by name."""
        return {
            "centroids": self.cells.centroids,
            "starts": self.starts,
            "rows": self.rows,
            "steps": self.steps,
            "probes": np.array([*self.probes.values()]),
            "recalls": np.array([*self.recalls.values()]),
        }

    def __str__(self) -> str:
        shares = ", ".join(f"{recall:.3f} of the {depth} nearest" for depth, recall in self.recalls.items())
        return f"recall {shares}, on a sample; {self.probes[DEPTHS[-1]]} of {len(self.starts) - 1:,} cells looked into"

    def top(self, questions: Floats, depth: int) -> list[TopRows]:
        """The best `depth` of the rows found for (q, d) question vectors; of all rows beyond the last of `DEPTHS`."""
        if depth > DEPTHS[-1] or not len(questions):
            return dense_top(questions, self.vectors, depth)
        # Two threads would wait for each other at products of so few rows, and take twice the time of both.
        with one_blas_thread():
            return self._top(questions, depth)

    def _top(self, questions: Floats, depth: int) -> list[TopRows]:
        found = Candidates(self.vectors, depth, -np.inf, questions, error=_error(self.vectors.shape[1]))
        near, scaled = self.cells.products(questions), questions / np.float32(COARSE)
        self._begin(found, scaled, near, depth)
        looks = near >= kth_best(near, self.probes[next(each for each in DEPTHS if depth <= each)])[:, None]
        for cell in np.flatnonzero(looks.any(axis=0)).tolist():
            asking = np.flatnonzero(looks[:, cell])
            rows, products = self._products(cell, scaled[asking])
            which, place = set_cells(products >= found.least[asking, None])
            found.offer(asking[which], rows[place].astype(np.intp), products[which, place])
        asking, candidates = found.remaining()
        each = np.split(candidates, np.searchsorted(asking, np.arange(1, len(questions))))
        return [best_of(self.vectors, *pair, depth) for pair in zip(each, questions, strict=True)]

    def _begin(self, found: Candidates, scaled: Floats, near: Floats, depth: int) -> None:
        """Let each question know how near its `depth` best rows are at least, by those of the cells nearest to it."""
        count = min(FIRST, near.shape[1])
        first = np.argpartition(-near, count - 1, axis=1)[:, :count]
        for number, cells in enumerate(first.tolist()):
            parts = [self._products(cell, scaled[number : number + 1])[1][0] for cell in cells]
            products = np.concatenate(parts)
            if len(products) >= depth:
                found.raise_least(np.array([number]), np.partition(products, -depth)[-depth])

    def _products(self, cell: int, scaled: Floats) -> tuple[NDArray[np.int32], Floats]:
        """The rows of a cell (r,), and their products with some questions (q, d) in steps: (q, r)."""
        part = slice(int(self.starts[cell]), int(self.starts[cell + 1]))
        return self.rows[part], np.asarray(scaled @ self.steps[part].astype(np.float32).T)


def _error(dimension: int) -> float:
    """How far a product with a row in whole steps may be from that with the row: |difference| ≤ √d · half a step."""
    return float(dimension**0.5 * 0.5 / COARSE)


def _ranks(cells: Cells, own: Indices, vectors: Floats, asking: Floats, depth: int) -> list[Indices]:
    """For each asking vector the ranks from 1, by nearness to it, of the cells of its `depth` nearest rows.

    Equally near cells share the first of their ranks, and what equals the asking vector is none of its nearest.
    """
    ranks = []
    for products, top in zip(cells.products(asking), dense_top(asking, vectors, depth + 1), strict=True):
        others = top.rows[top.scores < SAME][:depth]
        ranks.append((products > products[own[others], None]).sum(axis=1) + 1)
    return ranks


def _needed(ranks: Sequence[Indices]) -> int:
    """Into how many cells to look so that `RECALL` of the rows are found."""
    ordered = np.sort(np.concatenate([np.ones(1, np.intp), *ranks]))
    return int(ordered[int(np.ceil(RECALL * len(ordered))) - 1])


def _share(ranks: Sequence[Indices], probes: int) -> float:
    """The share of the rows that looking into so many cells finds."""
    found = np.concatenate([np.ones(1, np.intp), *ranks]) <= probes
    return round(float(found.mean()), 4)

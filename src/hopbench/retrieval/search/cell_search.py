"""Search among rows of unit vectors without looking at all of them: those of the cells nearest to a question.

An inverted file (Sivic and Zisserman, ICCV 2003) whose cells are multiplied with all questions that look into them at
once. Each row is in two cells (`Cells.own_and_second`). What a question finds are the best rows of its cells: products
of bytes (`byte_vectors`) say which may be among them, exact ones put these in order. Bytes say too which cells are
near. Whole numbers are the same on every processor. How many cells a question looks into is chosen on a sample of
vectors that ask, and what share of the nearest rows it finds so is measured on another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.byte_vectors import ByteVectors, byte_products
from hopbench.retrieval.search.cell_recall import Asked, nearest_others, needed, ranks_of, share_found
from hopbench.retrieval.search.cells import Cells, Floats, Indices, blocks, kth_best
from hopbench.retrieval.search.exact import TopRows, dense_top
from hopbench.retrieval.search.neighbours import Candidates
from hopbench.retrieval.search.topk import ROUNDING, best_cells, exact_cosines, kth_at_least, set_cells
from hopbench.retrieval.support.blas import in_threads
from hopbench.retrieval.support.csr import Lists
from hopbench.retrieval.support.distinct import among, distinct

VERSION = "cells-4"  # every change of what is found gives it another name
LEAST_ROWS = 20_000  # of fewer, looking at all takes as long, the centroids and the loop over cells counted
CELLS_PER_ROOT = 4.0  # of n rows, 4·√n cells: a fifth faster to ask than half as many, which are made in half the time
DEPTHS = (3, 10, 60)  # results for which the cells to look into are counted; more results take those of the last
QUESTIONS_AT_A_TIME = 256  # that a thread compares with the centroids
QUESTIONS_RANKED = 512  # whose rows a thread puts in order at a time
SAMPLE = 2000  # asking vectors: half of them choose, half measure
CELLS_AT_A_TIME = 64  # that a thread looks into before it offers what it has found
MAXIMA = 512  # of groups of cells, by which the nearest cells are known
ALLOWED_SPREADS = 3.0  # a byte product may be wrong by so many deviations: one pair of 90,000 trades places by more
NOTHING_YET = np.iinfo(np.int32).min  # the least product of a question that has not looked into a cell
_ARRAYS = ("starts", "rows", "own")


@dataclass(frozen=True, eq=False)
class CellSearch:
    """Rows of `vectors` (n, d) in c cells: cell i has `rows[starts[i] : starts[i + 1]]`.

    First come the rows whose cell it is by `own` (n,), then those whose second one it is. `codes` are the vectors of
    `rows` in bytes, side by side where they are multiplied together; `centroids` (c, d) are in bytes as well. `probes`
    and `recalls` are by `DEPTHS`: into how many cells a question looks, and what share of the nearest rows it finds.
    """

    vectors: Floats
    centroids: ByteVectors
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    own: NDArray[np.int32]
    codes: ByteVectors
    probes: Mapping[int, int]
    recalls: Mapping[int, float]

    @classmethod
    def fit(cls, vectors: Floats, asking: Asked) -> Self:
        """Put (n, d) unit vectors on the grid into cells; `asking` is a sample of what will be searched for."""
        cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
        own, second = cells.own_and_second(vectors)
        twice = np.flatnonzero(own != second)
        in_cells = np.concatenate([own, second[twice]])
        starts = np.concatenate([[0], np.cumsum(np.bincount(in_cells, minlength=len(cells.centroids)))])
        rows = np.concatenate([np.arange(len(own)), twice])[np.argsort(in_cells, kind="stable")].astype(np.int32)
        in_bytes, centroids = ByteVectors.with_common_step(vectors), ByteVectors.with_common_step(cells.centroids)
        both = np.stack([own, second])
        chooses, measures = (Asked(asking.vectors[half::2], asking.rows[half::2]) for half in (0, 1))
        nearest = nearest_others(chooses.vectors, vectors, DEPTHS[-1])
        probes = {depth: needed(ranks_of(centroids, both, chooses, nearest, depth)) for depth in DEPTHS}
        codes = ByteVectors(in_bytes.codes[rows], in_bytes.step)
        made = cls(vectors, centroids, starts, rows, own.astype(np.int32), codes, probes, {})
        true = dense_top(measures.vectors, vectors, DEPTHS[-1])
        return replace(made, recalls={depth: share_found(made.top(measures, depth), true, depth) for depth in DEPTHS})

    @classmethod
    def of_arrays(cls, vectors: Floats, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The search that was kept as `arrays`."""
        probes, recalls = (dict(zip(DEPTHS, arrays[name].tolist(), strict=True)) for name in ("probes", "recalls"))
        centroids, codes = (ByteVectors(arrays[name], arrays[f"{name}_step"]) for name in ("centroids", "codes"))
        parts = {name: arrays[name] for name in _ARRAYS}
        return cls(vectors, centroids, codes=codes, **parts, probes=probes, recalls=recalls)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the vectors as arrays by name."""
        return {
            "centroids": self.centroids.codes,
            "centroids_step": self.centroids.step,
            "codes": self.codes.codes,
            "codes_step": self.codes.step,
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
        more, size = Lists.of(asked.rows), len(self.vectors)
        pairs = distinct(np.concatenate([asking * size + rows, more.owner * size + more.values]))

        def ranked(part: slice) -> list[TopRows]:
            inside = slice(*pairs.searchsorted([part.start * size, part.stop * size]))
            asking, rows = np.divmod(pairs[inside], size)
            exact = exact_cosines(asked.vectors, asking, rows, self.vectors)
            asking, rows, values = best_cells(asking, rows, exact, depth)
            ends = asking.searchsorted(np.arange(part.start, part.stop + 1)).tolist()
            return [TopRows(rows[begin:end], np.asarray(values[begin:end])) for begin, end in pairwise(ends)]

        return [top for tops in in_threads(ranked, blocks(len(asked.vectors), QUESTIONS_RANKED)) for top in tops]

    def _found(self, questions: Floats, depth: int) -> tuple[Indices, Indices]:
        """Who asks and rows, few more than the `depth` best of the cells that each looks into."""
        asked = ByteVectors.with_own_steps(questions)
        error = np.float32(ALLOWED_SPREADS) * asked.spread(self.codes)
        found = Candidates(self.vectors, depth, -np.inf, questions, error=error)
        looks = self._looks(asked, self.probes[next(each for each in DEPTHS if depth <= each)])
        wanted = distinct(looks // len(questions))
        parts = [wanted[part] for part in blocks(len(wanted), CELLS_AT_A_TIME)]
        in_threads(lambda cells: self._look(found, asked, looks, cells, depth), parts)
        return found.remaining()

    def _look(self, found: Candidates, asked: ByteVectors, looks: Indices, cells: Indices, depth: int) -> None:
        """Offer each question what may be among its best in those of the `cells` that it looks into (`_looks`).

        They are ascending, and nobody looks into a cell between two of them.
        """
        size = len(asked.codes)
        here = looks[slice(*looks.searchsorted([cells[0] * size, (cells[-1] + 1) * size]))]
        of_cell, asking = np.divmod(here, size)
        begins = of_cell.searchsorted([*cells, cells[-1] + 1])
        steps = asked.step * self.codes.step
        least = _whole_steps(found.least, steps)
        # Gathered once for all cells: a floor that rises meanwhile would only have kept some candidates out.
        vectors, floors = asked.codes.take(asking, axis=0), least.take(asking)
        ends = np.stack([self.starts[cells], self.starts[cells + 1]], axis=1).tolist()
        at, near = [], []
        for (first, last), (begin, end) in zip(ends, pairwise(begins.tolist()), strict=True):
            products = byte_products(self.codes.codes[first:last], vectors[begin:end])
            floor = floors[begin:end]
            if floor.min() == NOTHING_YET and len(products) >= depth:
                who = asking[begin:end]
                floor = least.take(who)
                fresh = floor == NOTHING_YET
                new, kth = who[fresh], kth_best(products.T[fresh], depth)
                found.raise_least(new, kth.astype(np.float32) * steps[new])
                floor[fresh] = least[new] = _whole_steps(found.least[new], steps[new])
            at.append((products >= floor).ravel().nonzero()[0])
            near.append(products.take(at[-1]))
        of = np.repeat(np.arange(len(cells)), [len(each) for each in at])
        row, which = np.divmod(np.concatenate(at), np.diff(begins)[of])
        asking, rows = asking[begins[of] + which], self.rows[self.starts[cells[of]] + row]
        # Of a row's two cells, where the question looks into both, the first one offers it.
        own = self.own[rows].astype(np.int64)
        kept = own == cells[of]
        others = np.flatnonzero(~kept)
        kept[others] = ~among(own[others] * size + asking[others], looks)
        asking, rows = asking[kept], rows[kept]
        found.offer(asking, rows, np.concatenate(near)[kept].astype(np.float32) * steps[asking])

    def _looks(self, asked: ByteVectors, count: int) -> Indices:
        """Who looks into which cell, as cell · q + question, ascending: each into its `count` nearest, or more."""

        def look(part: slice) -> Indices:
            near = byte_products(asked.codes[part], self.centroids.codes)
            asking, cells = set_cells(near >= kth_at_least(near, count, MAXIMA))
            return np.asarray(cells * len(asked.codes) + asking + part.start)

        looks = np.concatenate(in_threads(look, blocks(len(asked.codes), QUESTIONS_AT_A_TIME)))
        looks.sort()
        return looks


def _whole_steps(least: Floats, steps: Floats) -> NDArray[np.int32]:
    """From which whole number of `steps` on a product may be at `least` or above, (n,)."""
    return np.asarray(np.floor(np.maximum((least - np.float32(ROUNDING)) / steps, NOTHING_YET)), np.int32)

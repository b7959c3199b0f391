"""The nearest chunks of all chunks within cells of near vectors: a small part of all pairs is multiplied.

An inverted file (Sivic and Zisserman, ICCV 2003; IVFFlat of faiss) whose queries are its own rows. A row looks into the
cells nearest to it; a pair is found where either end looks into the other's cell, and serves both ends. All rows that
look into a cell are multiplied with it at once, which is why it is faster than an index that answers row by row
(docs/scale.md compares them). How many cells a row looks into is chosen on a sample, by the recall that this gives.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction.all_pairs import Vectors, offer_within
from hopbench.retrieval.graph.construction.rounds import Search, at_once
from hopbench.retrieval.search.cells import Cells, blocks, kth_best
from hopbench.retrieval.search.neighbours import Candidates, Indices, Pairs
from hopbench.retrieval.search.samples import true_neighbours
from hopbench.retrieval.search.topk import set_cells
from hopbench.retrieval.support.arithmetic import on_grid

CELLS_PER_ROOT = 2.0  # of n rows, 2·√n cells: twice and four times as many took 26% and 120% longer at 100,000
RECALL = 0.98  # share of a sample's true neighbours that must be found


class Effort(NamedTuple):
    """How many cells there are, and into how many of them each row looked."""

    cells: int
    probes: int


class _Probes(NamedTuple):
    """Which rows look into which cells: `visitors[begins[i] : begins[i + 1]]` look into cell i.

    A row looks into the cells that are at least `least` (n,) near to it.
    """

    least: NDArray[np.float32]
    begins: NDArray[np.int64]
    visitors: NDArray[np.int32]

    def into(self, cell: int) -> Indices:
        """The rows that look into a cell, ascending."""
        return self.visitors[self.begins[cell] : self.begins[cell + 1]].astype(np.intp)


def cell_pairs(vectors: Vectors, *, top_k: int, floor: float, search: Search = at_once) -> tuple[Pairs, Effort]:
    """As `exact_pairs`, of the pairs that are looked at: the same on every processor and any number of threads."""
    vectors = on_grid(vectors)
    cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
    own = cells.own(vectors)
    effort = Effort(len(cells.centroids), _needed_probes(cells, own, vectors, top_k, floor))
    probes = _probes(cells, vectors, effort.probes)
    members = np.split(np.argsort(own, kind="stable"), np.cumsum(np.bincount(own, minlength=effort.cells))[:-1])
    found = Candidates(vectors, top_k, floor)
    filled = [cell for cell, rows in enumerate(members) if len(rows)]
    into = _Into(found, vectors, cells, own, probes)
    within = [partial(offer_within, found, vectors, members[cell], top_k) for cell in filled]
    search(found, [*within, *(partial(into.offer, cell, members[cell]) for cell in filled)])
    return found.pairs(), effort


class _Into(NamedTuple):
    """What it takes to offer the members of a cell and its visitors to each other."""

    found: Candidates
    vectors: Vectors
    cells: Cells
    own: Indices
    probes: _Probes

    def offer(self, cell: int, members: Indices) -> None:
        """Offer a cell's members and the rows elsewhere that look into it to each other.

        A member that looks into the row's cell is not offered the row here: it is offered it there.
        """
        found, block = self.found, self.vectors[members]
        looks_into = self.cells.products(block) >= self.probes.least[members, None]  # (members, cells)
        visitors = self.probes.into(cell)
        visitors = visitors[self.own[visitors] != cell]
        for part in blocks(len(visitors)):
            rows = visitors[part]
            products = self.vectors[rows] @ block.T
            here, there = set_cells(products >= found.least[rows, None])
            found.offer(rows[here], members[there], products[here, there])
            here, there = set_cells(products >= found.least[members])
            once = ~looks_into[there, self.own[rows[here]]]
            here, there = here[once], there[once]
            found.offer(members[there], rows[here], products[here, there])


def _probes(cells: Cells, vectors: Vectors, count: int) -> _Probes:
    """Each row looks into the `count` nearest cells, its own among them, and into all that are equally near."""
    least, masks = np.empty(len(vectors), np.float32), []
    sizes = np.zeros(len(cells.centroids), np.int64)
    for part in blocks(len(vectors)):
        products = cells.products(vectors[part])
        least[part] = kth_best(products, count)
        near = products >= least[part, None]
        sizes += near.sum(axis=0)
        masks.append(np.packbits(near, axis=1))  # a bit for each row and cell: 250 MB for a million rows
    begins = np.concatenate([[0], np.cumsum(sizes)])
    visitors, filled = np.empty(begins[-1], np.int32), begins[:-1].copy()
    for part, mask in zip(blocks(len(vectors)), masks, strict=True):
        of_cell, rows = set_cells(np.ascontiguousarray(np.unpackbits(mask, axis=1, count=len(sizes)).T))
        counts = np.bincount(of_cell, minlength=len(sizes))
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        visitors[filled[of_cell] + within] = part.start + rows
        filled += counts
    return _Probes(least, begins, visitors)


def _needed_probes(cells: Cells, own: Indices, vectors: Vectors, k: int, floor: float) -> int:
    """The least number of cells into which rows must look to find `RECALL` of a sample's true neighbours."""
    rows, neighbours = true_neighbours(vectors, k, floor, 0)
    if not len(rows):
        return 1
    ranks = np.minimum(_ranks(cells, vectors[rows], own[neighbours]), _ranks(cells, vectors[neighbours], own[rows]))
    return int(np.sort(ranks)[int(np.ceil(RECALL * len(ranks))) - 1])


def _ranks(cells: Cells, vectors: Vectors, of: Indices) -> Indices:
    """The rank from 1 of one cell for each row, by nearness; equally near cells share the first of their ranks."""
    ranks = np.empty(len(of), np.intp)
    for part in blocks(len(of)):
        products = cells.products(vectors[part])
        own = products[np.arange(len(products)), of[part]]
        ranks[part] = (products > own[:, None]).sum(axis=1) + 1
    return ranks

"""The nearest chunks of all chunks within cells of near vectors: a small part of all pairs is multiplied.

An inverted file (Sivic and Zisserman, ICCV 2003; IVFFlat of faiss) whose queries are its own rows. A row looks into the
cells nearest to it; a pair is found where either end looks into the other's cell, and serves both ends. All rows that
look into a cell are multiplied with it at once, which is why it is faster than an index that answers row by row
(docs/scale.md compares them). How many cells a row looks into is chosen on a sample, by the recall that this gives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopbench.retrieval.graph.build.all_pairs import Vectors, in_threads, offer_within
from hopbench.retrieval.graph.build.recall import true_neighbours
from hopbench.retrieval.search.cells import Cells, blocks
from hopbench.retrieval.search.neighbours import Candidates, Indices, Pairs
from hopbench.retrieval.search.topk import set_cells
from hopbench.retrieval.support.arithmetic import on_grid

CELLS_PER_ROOT = 2.0  # of n rows, 2·√n cells: twice and four times as many took 26% and 120% longer at 100,000
RECALL = 0.98  # share of a sample's true neighbours that must be found


class Effort(NamedTuple):
    """How many cells there are, and into how many of them each row looked."""

    cells: int
    probes: int


class _Probes(NamedTuple):
    """Which rows look into which cells: matrices (n, cells) by row (CSR) and by cell (CSC)."""

    of_rows: Any
    of_cells: Any

    def into(self, cell: int) -> Indices:
        """The rows that look into a cell."""
        begin, end = self.of_cells.indptr[cell : cell + 2]
        return np.asarray(self.of_cells.indices[begin:end], np.intp)


def cell_pairs(vectors: Vectors, *, top_k: int, floor: float) -> tuple[Pairs, Effort]:
    """As `exact_pairs`, of the pairs that are looked at: the same on every processor and any number of threads."""
    vectors = on_grid(vectors)
    cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
    own = cells.own(vectors)
    effort = Effort(len(cells.centroids), _needed_probes(cells, own, vectors, top_k, floor))
    probes = _probes(cells, vectors, effort.probes)
    members = np.split(np.argsort(own, kind="stable"), np.cumsum(np.bincount(own, minlength=effort.cells))[:-1])
    found = Candidates(vectors, top_k, floor)
    filled = [cell for cell, rows in enumerate(members) if len(rows)]
    in_threads(lambda cell: offer_within(found, vectors, members[cell], top_k), filled)
    in_threads(lambda cell: _offer_into(found, vectors, own, probes, cell, members[cell]), filled)
    return found.pairs(), effort


def _offer_into(
    found: Candidates, vectors: Vectors, own: Indices, probes: _Probes, cell: int, members: Indices
) -> None:
    """Offer a cell's members and the rows elsewhere that look into it to each other.

    A member that looks into the row's cell is not offered the row here: it is offered it there.
    """
    looks_into = probes.of_rows[members].toarray().astype(np.bool_)  # (members, cells)
    visitors = probes.into(cell)
    visitors = visitors[own[visitors] != cell]
    block = vectors[members]
    for part in blocks(len(visitors)):
        rows = visitors[part]
        products = vectors[rows] @ block.T
        here, there = set_cells(products >= found.least[rows, None])
        found.offer(rows[here], members[there], products[here, there])
        here, there = set_cells(products >= found.least[members])
        once = ~looks_into[there, own[rows[here]]]
        here, there = here[once], there[once]
        found.offer(members[there], rows[here], products[here, there])


def _probes(cells: Cells, vectors: Vectors, count: int) -> _Probes:
    """Each row looks into the `count` nearest cells, its own among them."""
    from scipy.sparse import csr_matrix

    counts, columns = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)]
    for part in blocks(len(vectors)):
        rows, near = cells.nearest(vectors[part], count)
        counts.append(np.bincount(rows, minlength=part.stop - part.start))
        columns.append(near.astype(np.int32))
    indices, begins = np.concatenate(columns), np.cumsum(np.concatenate(counts))
    shape = len(vectors), len(cells.centroids)
    of_rows = csr_matrix((np.ones(len(indices), np.bool_), indices, begins), shape=shape)
    return _Probes(of_rows, of_rows.tocsc())


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

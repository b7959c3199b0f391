"""SIMILAR_TO: each chunk's nearest neighbours by cosine, the union of both ends' top k.

All pairs are compared (`exact`), or those of near cells (`approximate`). float32 products find the candidate pairs; the
values stored, compared with the floor and sorted are exact cosines of vectors on the grid (`arithmetic`), rounded to
6 decimals. So edges depend neither on the processor nor on the number of threads.

The approximate method is an inverted file (Sivic and Zisserman, ICCV 2003; IVFFlat of faiss) whose queries are its own
rows. A row probes the cells nearest to it; a pair is found if either end probes the other's cell, and serves both ends.
All rows that probe a cell are multiplied with it at once, which is faster than an index that answers row by row
(docs/scale.md compares them). The number of probes is chosen by the recall it gives on a sample.

A killed build resumes with the candidates of its last saved round (`Staging.search`) and the last stage of tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction.plan import APPROXIMATE, EXACT, BuildSettings
from hopbench.retrieval.graph.construction.staging import Part, Search, Stage, Staging, at_once
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, SIMILAR_TO
from hopbench.retrieval.search.candidates import Candidates, Indices, Pairs, blocks, kth_at_least, set_cells
from hopbench.retrieval.search.cells import Cells, kth_best
from hopbench.retrieval.search.exact import true_neighbours
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.arrays import expand_ranges
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

TILE_ROWS = 1024  # a tile of 1024 × 1024 products is 4 MB and fits the cache

Vectors = NDArray[np.float32]


def exact_pairs(vectors: Vectors, *, top_k: int, floor: float, search: Search = at_once) -> Pairs:
    """Find pairs of rows of (n, d) unit vectors, one among the other's `top_k` nearest, cosine ≥ `floor`.

    Ties go to the earlier row. Runs on as many threads as BLAS uses.
    """
    vectors = on_grid(vectors)
    found = Candidates(vectors, top_k, floor)
    parts = [np.arange(part.start, part.stop) for part in blocks(len(vectors), TILE_ROWS)]

    def beyond(part: int) -> None:
        rows = parts[part]
        for others in parts[part + 1 :]:
            products = vectors[rows[0] : rows[-1] + 1] @ vectors[others[0] : others[-1] + 1].T
            here, there = set_cells(products >= found.least[rows, None])
            found.offer(rows[here], others[there], products[here, there])
            here, there = set_cells(products >= found.least[others])
            found.offer(others[there], rows[here], products[here, there])

    within = [partial(offer_within, found, vectors, rows, top_k) for rows in parts]
    search(found, [*within, *(partial(beyond, part) for part in range(len(parts)))])
    return found.pairs()


def offer_within(found: Candidates, vectors: Vectors, rows: Indices, k: int) -> None:
    """Offer rows to each other, and raise their thresholds to the k-th best cosine."""
    block = vectors[rows]
    products = block @ block.T
    np.fill_diagonal(products, -np.inf)
    found.raise_least(rows, kth_at_least(products, k)[:, 0])
    here, there = set_cells(products >= found.least[rows, None])
    found.offer(rows[here], rows[there], products[here, there])


CELLS_PER_ROOT = 2.0  # 2·√n cells for n rows: twice and four times as many took 26% and 120% longer at 100,000
TARGET_RECALL = 0.98  # share of a sample's true neighbours that must be found


def cell_pairs(
    vectors: Vectors, *, top_k: int, floor: float, search: Search = at_once
) -> tuple[Pairs, Mapping[str, int]]:
    """Find pairs as `exact_pairs` does, among rows of near cells; independent of processor and threads.

    Returns the number of cells and the number of `probes` of each row, too.
    """
    vectors = on_grid(vectors)
    cells = Cells.fit(vectors, max(round(CELLS_PER_ROOT * len(vectors) ** 0.5), 1))
    own, count = cells.own(vectors), len(cells.centroids)
    probes = _needed_probes(cells, own, vectors, top_k, floor)
    least, begins, visitors = _probes(cells, vectors, probes)
    members = np.split(np.argsort(own, kind="stable"), np.cumsum(np.bincount(own, minlength=count))[:-1])
    found = Candidates(vectors, top_k, floor)

    def offer(cell: int) -> None:
        """Offer a cell's members and the rows of other cells that probe it to each other.

        A member that probes the row's cell is not offered the row here, but there.
        """
        inside = members[cell]
        block = vectors[inside]
        probed = cells.products(block) >= least[inside, None]  # (members, cells)
        outside = visitors[begins[cell] : begins[cell + 1]].astype(np.intp)
        outside = outside[own[outside] != cell]
        for part in blocks(len(outside)):
            rows = outside[part]
            products = vectors[rows] @ block.T
            here, there = set_cells(products >= found.least[rows, None])
            found.offer(rows[here], inside[there], products[here, there])
            here, there = set_cells(products >= found.least[inside])
            once = ~probed[there, own[rows[here]]]
            here, there = here[once], there[once]
            found.offer(inside[there], rows[here], products[here, there])

    filled = [cell for cell, rows in enumerate(members) if len(rows)]
    within = [partial(offer_within, found, vectors, members[cell], top_k) for cell in filled]
    search(found, [*within, *(partial(offer, cell) for cell in filled)])
    return found.pairs(), {"cells": count, "probes": probes}


def _probes(cells: Cells, vectors: Vectors, count: int) -> tuple[Vectors, NDArray[np.int64], NDArray[np.int32]]:
    """Let each row probe its `count` nearest cells, including its own, and all cells tied with the last.

    Returns the least cosine with a cell that each row probes, (n,), and the rows that probe each cell, ascending:
    `visitors[begins[i] : begins[i + 1]]` probe cell i.
    """
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
    return least, begins, visitors


def _needed_probes(cells: Cells, own: Indices, vectors: Vectors, k: int, floor: float) -> int:
    """The smallest number of probes that finds `TARGET_RECALL` of a sample's true neighbours."""
    rows, neighbours = true_neighbours(vectors, k, floor, 0)
    if not len(rows):
        return 1
    ranks = np.minimum(_ranks(cells, vectors[rows], own[neighbours]), _ranks(cells, vectors[neighbours], own[rows]))
    return int(np.sort(ranks)[int(np.ceil(TARGET_RECALL * len(ranks))) - 1])


def _ranks(cells: Cells, vectors: Vectors, of: Indices) -> Indices:
    """The rank (from 1) of one cell per row, by nearness; ties share the lowest rank."""
    ranks = np.empty(len(of), np.intp)
    for part in blocks(len(of)):
        products = cells.products(vectors[part])
        own = products[np.arange(len(products)), of[part]]
        ranks[part] = (products > own[:, None]).sum(axis=1) + 1
    return ranks


def measured_recall(pairs: Pairs, vectors: NDArray[np.float32], *, top_k: int, floor: float) -> float:
    """Measure the share of the true neighbours of `SAMPLE` rows of (n, d) unit vectors that are among the pairs.

    1 if no row has a neighbour at `floor` or above. The sample differs from the one that set the number of probes.
    """
    rows, neighbours = true_neighbours(vectors, top_k, floor, 1)
    if not len(rows):
        return 1.0
    true = np.minimum(rows, neighbours).astype(np.int64) * len(vectors) + np.maximum(rows, neighbours)
    return float(np.isin(true, pairs.first.astype(np.int64) * len(vectors) + pairs.second).mean())


MAX_TAGS = 8


@dataclass(frozen=True)
class SharedStems:
    """The distinct stems of n chunks by their ranks in `stems`, the most salient first.

    Those of chunk i are `ranks[begins[i] : begins[i + 1]]`, in a tenth of the memory of sets.
    """

    stems: Sequence[str]
    begins: NDArray[np.int64]
    ranks: NDArray[np.int32]

    @classmethod
    def of(cls, chunks: Sequence[Chunk], tagger: Tagger) -> SharedStems:
        """Collect the stems of the chunks' contents, in the order of `Tagger.top`."""
        number_of: dict[str, int] = {}
        numbers = []
        for chunk in chunks:
            own = {number_of.setdefault(stem, len(number_of)) for stem in tagger.stems(chunk.content)}
            numbers.append(np.fromiter(own, np.int32, len(own)))
        stems = sorted(number_of, key=lambda stem: (-tagger.idf(stem), stem))
        rank_of = np.empty(len(stems), np.int32)
        rank_of[[number_of[stem] for stem in stems]] = np.arange(len(stems), dtype=np.int32)
        begins = np.cumsum([0, *map(len, numbers)])
        return cls(stems, begins, rank_of[np.concatenate([np.zeros(0, np.int32), *numbers])])

    def shared(self, first: Indices, second: Indices) -> list[list[str]]:
        """The `MAX_TAGS` most salient stems shared by the chunks of each pair, sorted."""
        size, sides = max(len(self.stems), 1), []
        for chunks in (first, second):  # a stem of a pair's chunk is the number pair · number of stems + rank
            places, owners = expand_ranges(self.begins[chunks], self.begins[chunks + 1])
            sides.append(owners * size + self.ranks[places])
        keys = np.sort(np.concatenate(sides))
        pairs, ranks = np.divmod(keys[1:][keys[1:] == keys[:-1]], size)
        chosen = np.arange(len(pairs)) - np.searchsorted(pairs, pairs) < MAX_TAGS
        tags: list[list[str]] = [[] for _ in first]
        for pair, rank in zip(pairs[chosen].tolist(), ranks[chosen].tolist(), strict=True):
            tags[pair].append(self.stems[rank])
        return [sorted(own) for own in tags]


ROUNDS = "near-rounds"  # the stage of an unfinished search
SEARCH = "search"  # the table with the method of the search and its recall
PAIRS = "pairs"  # the table of pairs by row, before tagging
TAG_BATCH = 100_000  # pairs tagged at a time: 100 MB
PAIRS_PER_STAGE = 5 * TAG_BATCH  # pairs per stage


def similar_stages(
    settings: BuildSettings,
    chunks: Sequence[Chunk],
    vectors: NDArray[np.float32],
    tagger: Tagger,
    staging: Staging,
) -> Stage:
    """Compute SIMILAR_TO of chunks with vectors (n, d), and the table `SEARCH`, in stages saved by `staging`."""

    def searched() -> Iterator[Part]:
        pairs, how = nearest(
            vectors,
            settings.similar,
            top_k=settings.similar_top_k,
            floor=settings.similar_floor,
            search=partial(staging.search, ROUNDS),
        )
        yield SEARCH, pd.DataFrame([how])
        for rows in blocks(len(pairs.first), PAIRS_PER_STAGE):
            yield PAIRS, pd.DataFrame(pairs.part(rows)._asdict())

    near = staging.load_or_compute("near", searched)
    staging.forget(ROUNDS)
    stems = cache(lambda: SharedStems.of(chunks, tagger))
    ids = np.array([chunk.id for chunk in chunks], object)

    def tagged(table: pd.DataFrame) -> Iterator[Part]:
        pairs = Pairs(*(table[name].to_numpy() for name in Pairs._fields))
        return ((SIMILAR_TO, part) for part in similar_parts(ids, pairs, stems()))

    return near + staging.each("similar", [partial(tagged, table) for table in near.parts(PAIRS)])


def nearest(
    vectors: NDArray[np.float32], method: str, *, top_k: int, floor: float, search: Search = at_once
) -> tuple[Pairs, Mapping[str, Any]]:
    """Find the nearest pairs of (n, d) unit vectors; returns the method with its figures, too.

    The recall of `APPROXIMATE` is measured on a sample.
    """
    if method == EXACT:
        return exact_pairs(vectors, top_k=top_k, floor=floor, search=search), {"method": EXACT, "recall": 1.0}
    pairs, effort = cell_pairs(vectors, top_k=top_k, floor=floor, search=search)
    recall = measured_recall(pairs, vectors, top_k=top_k, floor=floor)
    return pairs, {"method": APPROXIMATE, "recall": round(recall, 4), **effort}


def similar_parts(ids: NDArray[np.object_], pairs: Pairs, stems: SharedStems) -> Iterator[pd.DataFrame]:
    """Build the SIMILAR_TO table of pairs of chunks in parts; similarity is the raw cosine, 6 decimals.

    Tags are the most salient stems that both chunks share.
    """
    for rows in blocks(len(pairs.first), TAG_BATCH):
        first, second, cosine = pairs.part(rows)
        turned = ids[first] > ids[second]
        source, target = np.where(turned, second, first), np.where(turned, first, second)
        columns = ids[source], ids[target], cosine, stems.shared(first, second)
        yield pd.DataFrame(dict(zip(EDGE_COLUMNS[SIMILAR_TO], columns, strict=True)))

"""Search by cells: what it finds, and that nothing but the vectors decides it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.retrieval.search.test_approximate import QUESTIONS, VECTORS, clustered, same

from hopbench.retrieval.search.cell_search import DEPTHS, RECALL, CellSearch
from hopbench.retrieval.search.cells import coarse
from hopbench.retrieval.search.exact import cosines, dense_top

ASKING = clustered(400, seed=2)


@pytest.fixture(scope="module")
def fitted() -> CellSearch:
    return CellSearch.fit(VECTORS, ASKING)


def test_every_row_is_in_one_cell_that_of_the_nearest_centroid(fitted: CellSearch) -> None:
    assert sorted(fitted.rows.tolist()) == list(range(len(VECTORS)))
    cells = np.repeat(np.arange(len(fitted.starts) - 1), np.diff(fitted.starts))
    assert cells.tolist() == fitted.cells.products(VECTORS[fitted.rows]).argmax(axis=1).tolist()
    assert np.array_equal(fitted.steps / np.float32(2**11), coarse(VECTORS[fitted.rows]))


@pytest.mark.parametrize("depth", [1, 5, 20, 60])
def test_what_is_found_are_the_best_rows_of_the_cells_looked_into(fitted: CellSearch, depth: int) -> None:
    probes = fitted.probes[min(each for each in DEPTHS if each >= depth)]
    assert 1 < probes < len(fitted.starts) - 1
    cell_of = np.empty(len(VECTORS), int)
    cell_of[fitted.rows] = np.repeat(np.arange(len(fitted.starts) - 1), np.diff(fitted.starts))
    for found, question in zip(fitted.top(QUESTIONS, depth), QUESTIONS, strict=True):
        near = fitted.cells.products(question[None])[0]
        looked = np.flatnonzero(near[cell_of] >= np.sort(near)[-probes])
        scores = cosines(VECTORS, looked, question)
        best = sorted(zip((-scores).tolist(), looked.tolist(), strict=True))[:depth]
        assert list(zip((-found.scores).tolist(), found.rows.tolist(), strict=True)) == best


def test_the_recall_is_what_was_asked_for(fitted: CellSearch) -> None:
    for depth in DEPTHS:
        pairs = zip(fitted.top(QUESTIONS, depth), dense_top(QUESTIONS, VECTORS, depth), strict=True)
        shares = [np.isin(exact.rows, found.rows).mean() for found, exact in pairs]
        assert np.mean(shares) >= RECALL - 0.04  # sixty questions, around other centres than the sample
        assert fitted.recalls[depth] >= RECALL - 0.02
    assert f"{fitted.recalls[60]:.3f} of the 60 nearest" in str(fitted)


def test_beyond_the_deepest_all_rows_are_looked_at(fitted: CellSearch) -> None:
    assert same(fitted.top(QUESTIONS, 200), dense_top(QUESTIONS, VECTORS, 200))


def test_results_do_not_depend_on_what_shares_the_batch(fitted: CellSearch) -> None:
    alone = [fitted.top(QUESTIONS[n : n + 1], 20)[0] for n in range(len(QUESTIONS))]
    assert same(alone, fitted.top(QUESTIONS, 20))
    assert same(alone[:30], fitted.top(QUESTIONS[:30], 20))


def test_what_was_kept_as_arrays_finds_the_same(fitted: CellSearch) -> None:
    again = CellSearch.of_arrays(VECTORS, fitted.arrays())
    assert same(again.top(QUESTIONS, 20), fitted.top(QUESTIONS, 20))
    assert (again.probes, again.recalls) == (fitted.probes, fitted.recalls)


def test_few_rows_copies_and_none_at_all() -> None:
    copies = np.repeat(VECTORS[:3], 200, axis=0)
    found = CellSearch.fit(copies, QUESTIONS[:10]).top(QUESTIONS[:2], 20)
    assert [20, 20] == [len(top.rows) for top in found]
    few = CellSearch.fit(VECTORS[:4], QUESTIONS[:10])
    assert same(few.top(QUESTIONS, 10), dense_top(QUESTIONS, VECTORS[:4], 10))
    assert [] == few.top(QUESTIONS[:0], 10)

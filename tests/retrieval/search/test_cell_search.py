"""Search by cells: what it finds, and that nothing but the vectors decides it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.retrieval.search.test_approximate import QUESTIONS, VECTORS, clustered, same

from hopbench.retrieval.search.cells import DEPTHS, INDEX, RECALL, Cells, CellSearch, Queries
from hopbench.retrieval.search.exact import cosines, dense_top

ASKING = clustered(400, seed=2)


@pytest.fixture(scope="module")
def fitted() -> CellSearch:
    return CellSearch.fit(VECTORS, Queries(ASKING))


def test_every_row_is_in_the_cell_of_the_nearest_centroid(fitted: CellSearch) -> None:
    cells = Cells.fit(VECTORS, round(4.0 * len(VECTORS) ** 0.5))
    assert fitted.centroids.tolist() == cells.centroids.tolist()
    sizes = [fitted.lists.invlists.list_size(cell) for cell in range(len(fitted.centroids))]
    own = cells.products(VECTORS).argmax(axis=1)
    assert sizes == np.bincount(own, minlength=len(sizes)).tolist()


@pytest.mark.parametrize("depth", [1, 5, 20, 60])
def test_what_is_found_are_the_best_rows_of_the_cells_scanned(fitted: CellSearch, depth: int) -> None:
    probes = fitted.probes[min(each for each in DEPTHS if each >= depth)]
    assert 1 < probes < len(fitted.centroids)
    own = Cells(fitted.centroids).own(VECTORS)
    for found, question in zip(fitted.top(Queries(QUESTIONS), depth), QUESTIONS, strict=True):
        near = Cells(fitted.centroids).products(question[None])[0]
        scanned = np.flatnonzero(np.isin(own, np.argsort(-near, kind="stable")[:probes]))
        scores = cosines(VECTORS, scanned, question)
        best = sorted(zip((-scores).tolist(), scanned.tolist(), strict=True))[:depth]
        assert list(zip((-found.scores).tolist(), found.rows.tolist(), strict=True)) == best


def test_the_recall_is_what_was_asked_for() -> None:
    """For questions like those of the sample, which it did not hold."""
    alike = clustered(1400, seed=2)
    fitted, others = CellSearch.fit(VECTORS, Queries(alike[::2])), alike[1::2]
    for depth in DEPTHS:
        pairs = zip(fitted.top(Queries(others), depth), dense_top(others, VECTORS, depth), strict=True)
        shares = [np.isin(exact.rows, found.rows).mean() for found, exact in pairs]
        assert RECALL - 0.02 <= np.mean(shares) <= RECALL + 0.03
        assert np.mean(shares) == pytest.approx(fitted.recalls[depth], abs=0.02)
    assert f"{fitted.recalls[60]:.3f} of the 60 nearest" in str(fitted)


def test_beyond_the_deepest_all_rows_are_looked_at(fitted: CellSearch) -> None:
    assert same(fitted.top(Queries(QUESTIONS), 200), dense_top(QUESTIONS, VECTORS, 200))


def test_rows_that_a_question_brings_are_looked_at_in_any_case(fitted: CellSearch) -> None:
    exact = dense_top(QUESTIONS, VECTORS, 3)
    far = [np.concatenate([top.rows, top.rows[:1]]) for top in exact]  # the same row twice, and rows of its own cells
    assert same(fitted.top(Queries(QUESTIONS, far), 3), exact)
    nothing = [np.zeros(0, np.intp)] * len(QUESTIONS)
    assert same(fitted.top(Queries(QUESTIONS, nothing), 3), fitted.top(Queries(QUESTIONS), 3))
    brought = [top.rows for top in dense_top(ASKING, VECTORS, 61)]
    assert [1, 1, 1] == [*CellSearch.fit(VECTORS, Queries(ASKING, brought)).probes.values()]


def test_results_do_not_depend_on_what_shares_the_batch(fitted: CellSearch) -> None:
    alone = [fitted.top(Queries(QUESTIONS[n : n + 1]), 20)[0] for n in range(len(QUESTIONS))]
    assert same(alone, fitted.top(Queries(QUESTIONS), 20))
    assert same(alone[:30], fitted.top(Queries(QUESTIONS[:30]), 20))


def test_what_was_saved_finds_the_same(fitted: CellSearch, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    again = CellSearch.load(tmp_path, VECTORS)
    assert same(again.top(Queries(QUESTIONS), 20), fitted.top(Queries(QUESTIONS), 20))
    assert (again.probes, again.recalls) == (fitted.probes, fitted.recalls)
    (tmp_path / INDEX).write_bytes(b"cut")
    with pytest.raises(ValueError, match="Index type"):
        CellSearch.load(tmp_path, VECTORS)


def test_few_rows_copies_and_none_at_all() -> None:
    copies = np.repeat(VECTORS[:3], 200, axis=0)
    found = CellSearch.fit(copies, Queries(QUESTIONS[:10])).top(Queries(QUESTIONS[:2]), 20)
    assert same(found, dense_top(QUESTIONS[:2], copies, 20))
    few = CellSearch.fit(VECTORS[:4], Queries(QUESTIONS[:10]))
    assert same(few.top(Queries(QUESTIONS), 10), dense_top(QUESTIONS, VECTORS[:4], 10))
    assert [] == few.top(Queries(QUESTIONS[:0]), 10)

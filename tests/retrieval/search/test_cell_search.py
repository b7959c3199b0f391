"""Search by cells: what it finds, and that nothing but the vectors decides it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.retrieval.search.test_approximate import QUESTIONS, VECTORS, clustered, same

from hopbench.retrieval.search.byte_vectors import ByteVectors
from hopbench.retrieval.search.cell_recall import RECALL, Asked
from hopbench.retrieval.search.cell_search import DEPTHS, CellSearch
from hopbench.retrieval.search.cells import Cells, coarse
from hopbench.retrieval.search.exact import cosines, dense_top

ASKING = clustered(400, seed=2)


@pytest.fixture(scope="module")
def fitted() -> CellSearch:
    return CellSearch.fit(VECTORS, Asked(ASKING))


CELLS = Cells.fit(VECTORS, round(4.0 * len(VECTORS) ** 0.5))


def cells_of(fitted: CellSearch) -> np.ndarray:
    """The two cells of each row, (2, n); one twice where it has no second."""
    of = np.repeat(np.arange(len(fitted.starts) - 1), np.diff(fitted.starts))
    first = fitted.own[fitted.rows] == of
    cells = np.empty((2, len(VECTORS)), int)
    cells[:, fitted.rows[first]] = of[first]
    cells[1, fitted.rows[~first]] = of[~first]
    return cells


def test_every_row_is_in_the_cell_of_the_nearest_centroid(fitted: CellSearch) -> None:
    assert fitted.own.tolist() == CELLS.products(VECTORS).argmax(axis=1).tolist()
    for begin, end in pairwise(fitted.starts.tolist()):
        assert len(set(fitted.rows[begin:end].tolist())) == end - begin  # a row once in a cell
    near = fitted.codes.codes * fitted.codes.step - VECTORS[fitted.rows]
    assert np.abs(near).max() <= fitted.codes.step * 0.5001
    assert np.abs(fitted.centroids.codes * fitted.centroids.step - CELLS.centroids).max() < fitted.centroids.step


def test_and_in_a_second_one_by_the_definition(fitted: CellSearch) -> None:
    """SOAR's loss with λ = 1: |x − c₂|² + ((x − c₁)·(x − c₂))² / |x − c₁|²."""
    own, second = cells_of(fitted)
    assert sorted(fitted.rows.tolist()) == sorted([*range(len(VECTORS))] * 2)
    rows, centroids = coarse(VECTORS).astype(np.float64), CELLS.centroids.astype(np.float64)
    for row, first, other in zip(rows, own.tolist(), second.tolist(), strict=True):
        residual, beyond = row - centroids[first], row - centroids
        length = max(residual @ residual, 1e-12)  # a row may be its centroid
        loss = (beyond**2).sum(axis=1) + (beyond @ residual) ** 2 / length
        loss[first] = np.inf
        assert loss[other] == pytest.approx(loss.min(), abs=1e-5)


@pytest.mark.parametrize("depth", [1, 5, 20, 60])
def test_what_is_found_are_the_best_rows_of_the_cells_looked_into(fitted: CellSearch, depth: int) -> None:
    probes = fitted.probes[min(each for each in DEPTHS if each >= depth)]
    assert 1 < probes < len(fitted.starts) - 1
    both = cells_of(fitted)
    for found, question in zip(fitted.top(Asked(QUESTIONS), depth), QUESTIONS, strict=True):
        near = ByteVectors.with_own_steps(question[None]).codes[0].astype(int) @ fitted.centroids.codes.astype(int).T
        looked = np.flatnonzero(near[both].max(axis=0) >= np.sort(near)[-probes])
        scores = cosines(VECTORS, looked, question)
        best = sorted(zip((-scores).tolist(), looked.tolist(), strict=True))[:depth]
        assert list(zip((-found.scores).tolist(), found.rows.tolist(), strict=True)) == best


def test_the_recall_is_what_was_asked_for() -> None:
    """For questions like those of the sample, which it did not hold."""
    alike = clustered(1400, seed=2)
    fitted, others = CellSearch.fit(VECTORS, Asked(alike[::2])), alike[1::2]
    for depth in DEPTHS:
        pairs = zip(fitted.top(Asked(others), depth), dense_top(others, VECTORS, depth), strict=True)
        shares = [np.isin(exact.rows, found.rows).mean() for found, exact in pairs]
        assert RECALL - 0.02 <= np.mean(shares) <= RECALL + 0.03
        assert np.mean(shares) == pytest.approx(fitted.recalls[depth], abs=0.02)
    assert f"{fitted.recalls[60]:.3f} of the 60 nearest" in str(fitted)


def test_beyond_the_deepest_all_rows_are_looked_at(fitted: CellSearch) -> None:
    assert same(fitted.top(Asked(QUESTIONS), 200), dense_top(QUESTIONS, VECTORS, 200))


def test_rows_that_a_question_brings_are_looked_at_in_any_case(fitted: CellSearch) -> None:
    exact = dense_top(QUESTIONS, VECTORS, 3)
    far = [np.concatenate([top.rows, top.rows[:1]]) for top in exact]  # the same row twice, and rows of its own cells
    assert same(fitted.top(Asked(QUESTIONS, far), 3), exact)
    nothing = [np.zeros(0, np.intp)] * len(QUESTIONS)
    assert same(fitted.top(Asked(QUESTIONS, nothing), 3), fitted.top(Asked(QUESTIONS), 3))
    brought = [top.rows for top in dense_top(ASKING, VECTORS, 61)]
    assert [1, 1, 1] == [*CellSearch.fit(VECTORS, Asked(ASKING, brought)).probes.values()]


def test_results_do_not_depend_on_what_shares_the_batch(fitted: CellSearch) -> None:
    alone = [fitted.top(Asked(QUESTIONS[n : n + 1]), 20)[0] for n in range(len(QUESTIONS))]
    assert same(alone, fitted.top(Asked(QUESTIONS), 20))
    assert same(alone[:30], fitted.top(Asked(QUESTIONS[:30]), 20))


def test_what_was_kept_as_arrays_finds_the_same(fitted: CellSearch) -> None:
    again = CellSearch.of_arrays(VECTORS, fitted.arrays())
    assert same(again.top(Asked(QUESTIONS), 20), fitted.top(Asked(QUESTIONS), 20))
    assert (again.probes, again.recalls) == (fitted.probes, fitted.recalls)


def test_few_rows_copies_and_none_at_all() -> None:
    copies = np.repeat(VECTORS[:3], 200, axis=0)
    found = CellSearch.fit(copies, Asked(QUESTIONS[:10])).top(Asked(QUESTIONS[:2]), 20)
    assert [20, 20] == [len(top.rows) for top in found]
    few = CellSearch.fit(VECTORS[:4], Asked(QUESTIONS[:10]))
    assert same(few.top(Asked(QUESTIONS), 10), dense_top(QUESTIONS, VECTORS[:4], 10))
    assert [] == few.top(Asked(QUESTIONS[:0]), 10)

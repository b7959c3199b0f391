"""Search by cells against its definition, whatever the order in which cells are looked into and the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from hopbench.retrieval.search import cell_search, neighbours
from hopbench.retrieval.search.byte_vectors import ByteVectors
from hopbench.retrieval.search.cell_recall import Asked
from hopbench.retrieval.search.cell_search import ALLOWED_SPREADS, DEPTHS, MAXIMA, CellSearch
from hopbench.retrieval.search.exact import dense_top
from hopbench.retrieval.search.neighbours import Candidates
from hopbench.retrieval.search.topk import best_cells, exact_cosines, kth_at_least, slack
from hopbench.retrieval.support.arithmetic import on_grid


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return on_grid(np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0).astype(np.float32))


def drawn(kind: str, rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Vectors of a kind, some of them zero, as of texts without a known word."""
    centres = rng.normal(size=(max(count // 40, 1), dimension))
    near = centres[rng.integers(0, len(centres), count)]
    rows = {
        "any": rng.normal(size=(count, dimension)),
        "copies": near,
        "nearly copies": near + 0.01 * rng.normal(size=near.shape),
        "words": (rng.random((count, dimension)) < rng.uniform(0.02, 0.3, (count, 1))).astype(float),
    }[kind]
    rows[rng.integers(0, count, count // 20)] = 0.0
    return unit(rows)


def by_definition(search: CellSearch, questions: np.ndarray, depth: int, probes: int) -> list[tuple[list, list]]:
    """Of the rows in the cells nearest to each question those whose product in bytes allows it, by exact cosines."""
    asked, found = ByteVectors.with_own_steps(questions), []
    codes = np.zeros(search.vectors.shape, np.int64)
    codes[search.rows] = search.codes.codes
    inside = np.zeros((len(search.starts) - 1, len(codes)), bool)
    inside[np.repeat(np.arange(len(inside)), np.diff(search.starts)), search.rows] = True
    gaps = slack(codes.shape[1]) + 2.0 * (np.float32(ALLOWED_SPREADS) * asked.spread(search.codes))
    for question, code, step, gap in zip(questions, asked.codes.astype(np.int64), asked.step, gaps, strict=True):
        near = code @ search.centroids.codes.T.astype(np.int64)
        rows = np.flatnonzero(inside[near >= kth_at_least(near[None], probes, MAXIMA)[0]].any(axis=0))
        products = (codes[rows] @ code).astype(np.float32) * (step * search.codes.step)
        if len(rows) >= depth:
            rows = rows[products >= np.sort(products)[-depth] - np.float32(gap)]
        first = np.zeros(len(rows), np.intp)
        _, rows, scores = best_cells(first, rows, exact_cosines(question[None], first, rows, search.vectors), depth)
        found.append((rows.tolist(), scores.tolist()))
    return found


@pytest.mark.parametrize("dimension", [2, 17, 256])
@pytest.mark.parametrize("kind", ["any", "copies", "nearly copies", "words"])
def test_what_is_found_is_what_the_definition_says(kind: str, dimension: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(dimension)
    rows = drawn(kind, rng, 800, dimension)
    questions = np.concatenate([rows[::40], drawn(kind, rng, 20, dimension)])
    search = CellSearch.fit(rows, Asked(questions))

    def shuffled(threads: int) -> Callable[..., None]:
        def in_threads(work: Callable[[object], object], parts: Iterable[object]) -> list[object]:
            listed = list(parts)
            order = rng.permutation(len(listed)).tolist()
            with ThreadPoolExecutor(threads) as pool:
                done = dict(zip(order, pool.map(work, [listed[place] for place in order]), strict=True))
            return [done[place] for place in range(len(listed))]

        return in_threads

    for depth, threads, held, together in ((1, 1, 1, 1), (3, 2, 1, 7), (10, 2, 50, 64), (60, 4, 1 << 17, 2)):
        monkeypatch.setattr(cell_search, "in_threads", shuffled(threads))
        monkeypatch.setattr(cell_search, "CELLS_AT_A_TIME", together)
        monkeypatch.setattr(cell_search, "QUESTIONS_RANKED", together)
        monkeypatch.setattr(neighbours, "LEAST_HELD", held)
        monkeypatch.setattr(neighbours, "HELD_FOR_EACH", 0)
        probes = int(rng.integers(1, len(search.starts)))
        some = rng.permutation(len(questions))[: rng.integers(1, len(questions) + 1)]
        expected = by_definition(search, questions[some], depth, probes)
        found = replace(search, probes=dict.fromkeys(DEPTHS, probes)).top(Asked(questions[some]), depth)
        assert expected == [(top.rows.tolist(), top.scores.tolist()) for top in found]


@pytest.mark.parametrize("crowd_first", [True, False])
def test_what_is_dropped_of_a_crowd_does_not_depend_on_when(crowd_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest row, 0, has too low a product to stay once row 9 is known; row 1, the next nearest, stays."""
    monkeypatch.setattr(neighbours, "LEAST_HELD", 1)
    cosines = np.array([0.99, 0.98, *[0.9] * 7, 0.95])
    rows = np.stack([cosines, np.sqrt(1.0 - cosines**2)], axis=1).astype(np.float32)
    products = np.array([0.80, 0.88, 0.89, *[0.82] * 6, 0.97], np.float32)
    question, error = np.array([[1.0, 0.0]], np.float32), np.array([0.05], np.float32)
    found = Candidates(on_grid(rows), 1, -np.inf, question, error=error)
    parts = [np.arange(9), np.array([9])]
    for part in parts if crowd_first else parts[::-1]:
        found.offer(np.zeros(len(part), np.intp), part, products[part])
    _, candidates = found.remaining()
    assert {1, 2, 9} == set(candidates.tolist())


def test_no_near_row_is_lost_to_bytes() -> None:
    """Of thousands that are nearly as near, which bytes put in another order."""
    rng = np.random.default_rng(5)
    rows = unit(rng.normal(size=256) + 0.4 * rng.normal(size=(4000, 256)))
    questions = unit(rng.normal(size=256) + 0.4 * rng.normal(size=(200, 256)))
    search = CellSearch.fit(rows, Asked(questions))
    everywhere = replace(search, probes=dict.fromkeys(DEPTHS, len(search.starts) - 1))
    for top, exact in zip(everywhere.top(Asked(questions), 5), dense_top(questions, rows, 5), strict=True):
        assert top.rows.tolist() == exact.rows.tolist()


def test_the_recall_that_is_told_counts_what_bytes_lose() -> None:
    """One text of a single word sets the step of all: the others' components all round in the same direction."""
    rng = np.random.default_rng(2)
    words = (rng.random((2000, 300)) < rng.uniform(0.1, 0.5, (2000, 1))).astype(float)
    words[0] = np.eye(300)[0]
    rows = unit(words)
    asking = unit((rng.random((400, 300)) < 0.3).astype(float))
    search = CellSearch.fit(rows, Asked(asking))
    others = unit((rng.random((400, 300)) < 0.3).astype(float))
    pairs = zip(search.top(Asked(others), 3), dense_top(others, rows, 3), strict=True)
    recall = np.mean([np.isin(exact.rows, top.rows).mean() for top, exact in pairs])
    assert recall < 0.9
    assert recall == pytest.approx(search.recalls[3], abs=0.03)

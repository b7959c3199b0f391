"""Dense search by a graph of near vectors: what it finds, and that nothing but the vectors decides it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopbench.retrieval.index.cache import IndexCache
from hopbench.retrieval.search.approximate import DEPTHS, GRAPH, RECALL, ApproximateSearch
from hopbench.retrieval.search.exact import TopRows, dense_top
from hopbench.retrieval.support.arithmetic import on_grid


def clustered(count: int, clusters: int = 40, dimension: int = 32, seed: int = 0) -> np.ndarray:
    """Unit vectors around some centres."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(clusters, dimension))[rng.integers(clusters, size=count)]
    vectors = vectors + 0.6 * rng.normal(size=vectors.shape)
    return on_grid((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


VECTORS, QUESTIONS = clustered(3000), clustered(60, seed=1)


@pytest.fixture(scope="module")
def fitted() -> ApproximateSearch:
    return ApproximateSearch.fit(VECTORS)


def same(found: list[TopRows], expected: list[TopRows]) -> bool:
    return all(
        np.array_equal(a.rows, b.rows) and np.array_equal(a.scores, b.scores)
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("depth", [1, 3, 10, 100, 150])
def test_most_of_the_best_are_found_in_the_order_and_with_the_scores_of_exact_search(
    fitted: ApproximateSearch, depth: int
) -> None:
    hits = 0
    for found, exact in zip(fitted.top(QUESTIONS, VECTORS, depth), dense_top(QUESTIONS, VECTORS, depth), strict=True):
        assert len(found.rows) == depth
        known = dict(zip(exact.rows.tolist(), exact.scores.tolist(), strict=True))
        common = [row for row in found.rows.tolist() if row in known]
        assert common == [row for row in exact.rows.tolist() if row in set(found.rows.tolist())]
        assert all(known[row] == score for row, score in zip(found.rows, found.scores, strict=True) if row in known)
        hits += len(common)
    assert hits / (depth * len(QUESTIONS)) >= 0.97


def test_the_measured_recall_is_what_was_asked_for(fitted: ApproximateSearch) -> None:
    assert set(fitted.recalls) == set(DEPTHS)
    assert all(recall >= RECALL - 0.01 for recall in fitted.recalls.values())  # of another sample than the one set by
    assert "0.9" in str(fitted) or "1.000" in str(fitted)


def test_results_do_not_depend_on_what_shares_the_batch(fitted: ApproximateSearch) -> None:
    alone = [fitted.top(QUESTIONS[n : n + 1], VECTORS, 10)[0] for n in range(len(QUESTIONS))]
    assert same(alone, fitted.top(QUESTIONS, VECTORS, 10))


def test_few_rows_copies_and_none_at_all() -> None:
    copies = np.repeat(VECTORS[:3], 200, axis=0)
    assert [len(top.rows) for top in ApproximateSearch.fit(copies).top(QUESTIONS[:2], copies, 20)] == [20, 20]
    few = ApproximateSearch.fit(VECTORS[:4])
    assert same(few.top(QUESTIONS, VECTORS[:4], 10), dense_top(QUESTIONS, VECTORS[:4], 10))
    none = ApproximateSearch.fit(VECTORS[:0])
    assert [top.rows.tolist() for top in none.top(QUESTIONS[:2], VECTORS[:0], 5)] == [[], []]


def test_a_thousand_copies_are_found_by_each_of_them_and_change_nothing_for_the_others(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0).permutation(2000)
    numbers = np.where(drawn < 1000, drawn, 7)  # 1,001 rows have the vector 7
    distinct = numbers[np.sort(np.unique(numbers, return_index=True)[1])]
    vectors, copies = VECTORS[numbers], np.flatnonzero(numbers == 7).tolist()
    found, alone = ApproximateSearch.fit(vectors), ApproximateSearch.fit(VECTORS[distinct])
    found.save(tmp_path)

    for search in (found, ApproximateSearch.load(tmp_path)):
        for row, top in enumerate(search.top(vectors, vectors, 10)):
            expected = copies[:10] if numbers[row] == 7 else [row]
            assert expected == top.rows[: len(expected)].tolist(), row
    assert (alone.breadths, alone.recalls) == (found.breadths, found.recalls)
    for with_copies, one_each in zip(
        found.top(QUESTIONS, vectors, 10), alone.top(QUESTIONS, VECTORS[distinct], 10), strict=True
    ):
        seen = list(dict.fromkeys(numbers[with_copies.rows].tolist()))
        assert seen == distinct[one_each.rows].tolist()[: len(seen)]


def test_a_low_recall_names_the_cause_and_the_remedy(fitted: ApproximateSearch) -> None:
    assert "--dense exact" not in str(fitted)
    assert str(replace(fitted, recalls={3: 0.99, 10: 0.5})).endswith("nearly alike; --dense exact finds all")


def test_a_damaged_file_is_made_again(fitted: ApproximateSearch, tmp_path: Path) -> None:
    kept = IndexCache(tmp_path)
    expected = kept.approximate(lambda: fitted).top(QUESTIONS, VECTORS, 10)
    assert same(expected, fitted.top(QUESTIONS, VECTORS, 10))
    file = tmp_path / "near-chunks" / GRAPH
    file.write_bytes(b"none" + file.read_bytes()[4:])  # of the same size
    made: list[int] = []

    def again() -> ApproximateSearch:
        made.append(1)
        return fitted

    assert same(kept.approximate(again).top(QUESTIONS, VECTORS, 10), expected)
    assert same(kept.approximate(again).top(QUESTIONS, VECTORS, 10), expected)
    assert len(made) == 1


WRITE = """
import sys
from pathlib import Path
from tests.retrieval.search.test_approximate import VECTORS
from hopbench.retrieval.search.approximate import ApproximateSearch
ApproximateSearch.fit(VECTORS).save(Path(sys.argv[1]))
"""


def test_the_graph_is_the_same_whatever_instructions_and_threads_make_it(
    fitted: ApproximateSearch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    fitted.save(here)
    monkeypatch.setenv("FAISS_OPT_LEVEL", "generic")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    subprocess.run([sys.executable, "-c", WRITE, str(there)], check=True)
    assert {file.name: file.read_bytes() for file in here.iterdir()} == {
        file.name: file.read_bytes() for file in there.iterdir()
    }

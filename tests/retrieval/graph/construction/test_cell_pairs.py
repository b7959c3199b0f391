"""SIMILAR_TO within cells: high recall for a part of the products, and the same pairs whatever computes them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction import similarity
from hopbench.retrieval.graph.construction.plan import EXACT_PASSAGES, BuildSettings, method_for
from hopbench.retrieval.graph.construction.similarity import cell_pairs, exact_pairs, measured_recall
from hopbench.retrieval.search import exact as samples
from hopbench.retrieval.search.candidates import Pairs
from hopbench.retrieval.search.cells import Cells, coarse
from hopbench.retrieval.search.exact import true_neighbours


def clustered(count: int, dimension: int = 32, clusters: int = 40) -> NDArray[np.float32]:
    drawn = np.random.default_rng(5)
    centres = drawn.standard_normal((clusters, dimension))
    vectors = centres[drawn.integers(0, clusters, count)] + 0.5 * drawn.standard_normal((count, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def ends(pairs: Pairs) -> set[tuple[int, int]]:
    return set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))


VECTORS = clustered(4000)
EXACT = exact_pairs(VECTORS, top_k=5, floor=0.2)


def test_nearly_all_edges_are_found_in_a_part_of_the_cells() -> None:
    found, effort = cell_pairs(VECTORS, top_k=5, floor=0.2)

    assert len(ends(EXACT) & ends(found)) >= 0.97 * len(EXACT.first)
    assert effort["probes"] < effort["cells"] / 4
    cosine = dict(zip(zip(EXACT.first.tolist(), EXACT.second.tolist(), strict=True), EXACT.cosine, strict=True))
    both = [
        at for at, pair in enumerate(zip(found.first.tolist(), found.second.tolist(), strict=True)) if pair in cosine
    ]
    assert all(found.cosine[at] == cosine[found.first[at], found.second[at]] for at in both)


def test_who_looks_into_every_cell_finds_every_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "_needed_probes", lambda *_: 10**6)

    found, _ = cell_pairs(VECTORS[:1500], top_k=5, floor=0.2)

    exact = exact_pairs(VECTORS[:1500], top_k=5, floor=0.2)
    assert all(np.array_equal(one, other) for one, other in zip(exact, found, strict=True))


def test_a_pair_serves_both_ends_whichever_looks_into_the_others_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    # With one probe a row looks into its own cell only; with two, of some pairs one end alone looks into the other's.
    edges = []
    for probes in (1, 2, 4):
        monkeypatch.setattr(similarity, "_needed_probes", lambda *_, probes=probes: probes)
        edges.append(len(ends(EXACT) & ends(cell_pairs(VECTORS, top_k=5, floor=0.2)[0])))

    assert edges[0] < edges[1] < edges[2]


def test_threads_change_nothing() -> None:
    from threadpoolctl import threadpool_limits

    found = []
    for threads in (1, 3):
        with threadpool_limits(threads, "blas"):
            found.append(cell_pairs(VECTORS, top_k=5, floor=0.2))

    assert found[0][1] == found[1][1]
    assert all(np.array_equal(one, other) for one, other in zip(found[0][0], found[1][0], strict=True))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 17])
def test_small_and_blank_corpora_have_what_all_pairs_give(count: int) -> None:
    vectors = clustered(count, clusters=2)
    vectors[count // 2 :] = 0.0  # blank texts

    found, _ = cell_pairs(vectors, top_k=2, floor=0.1)

    assert ends(exact_pairs(vectors, top_k=2, floor=0.1)) >= ends(found)


def test_copies_of_one_text_are_no_trouble() -> None:
    vectors = np.repeat(VECTORS[:3], 200, axis=0)

    assert ends(exact_pairs(vectors, top_k=4, floor=0.3)) == ends(cell_pairs(vectors, top_k=4, floor=0.3)[0])


def test_the_sample_has_the_true_neighbours_of_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "SAMPLE", 50)
    both = [true_neighbours(VECTORS, 5, 0.2, sample) for sample in (0, 1)]

    assert set() == set(both[0][0]) & set(both[1][0])
    for rows, neighbours in both:
        assert 50 == len(set(rows))
        for row in set(rows.tolist()):
            products = VECTORS.astype(np.float64) @ VECTORS[row].astype(np.float64)
            products[row] = -1
            assert set(np.argsort(-products)[:5].tolist()) == set(neighbours[rows == row].tolist())


def test_recall_is_the_share_of_the_samples_neighbours_that_are_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "SAMPLE", 2000)  # every second row
    half = Pairs(*(part[::2] for part in EXACT))

    assert 1.0 == measured_recall(EXACT, VECTORS, top_k=5, floor=0.2)
    assert 0.45 < measured_recall(half, VECTORS, top_k=5, floor=0.2) < 0.55
    assert 0.0 == measured_recall(Pairs(*(part[:0] for part in EXACT)), VECTORS, top_k=5, floor=0.2)
    assert 1.0 == measured_recall(EXACT, VECTORS, top_k=5, floor=1.0)  # nobody has a neighbour there


def test_what_is_compared_with_a_centroid_is_exact_in_float32() -> None:
    cells = Cells.fit(VECTORS, 60)
    products = cells.products(VECTORS)

    exact = coarse(VECTORS).astype(np.float64) @ cells.centroids.astype(np.float64).T
    assert np.array_equal(exact, products.astype(np.float64))
    assert np.array_equal(exact.argmax(axis=1), cells.own(VECTORS))
    assert np.allclose(1.0, np.linalg.norm(cells.centroids, axis=1), atol=0.01)


def test_many_passages_are_compared_within_cells_unless_one_says_otherwise() -> None:
    assert ("exact", "approximate") == (method_for(EXACT_PASSAGES), method_for(EXACT_PASSAGES + 1))


def test_the_build_key_of_an_exact_graph_names_no_method() -> None:
    settings = {"extractor": "rules", "recogniser": "", "similar_top_k": 10, "similar_floor": 0.3, "max_tokens": 1200}

    assert settings | {"tokenizer": "o200k_base"} == BuildSettings().identity()
    assert {*settings, "tokenizer", "similar"} == set(BuildSettings(similar="approximate").identity())

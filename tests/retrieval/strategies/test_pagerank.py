"""Personalised PageRank: the walk, its seeds, and that the graph it walks is the store's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.support.graphs import (
    ASKED,
    WORLD,
    CountingStore,
    PlainGraph,
    built_index,
    graph_tables,
    hand_index,
    plain_graphs,
    plan_of,
)

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies import pagerank
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.traversal.random_walk import LocalWalk, power_iteration, transitions
from hopbench.retrieval.types import Counters, Question

# Two chunks and two entities: x is in both chunks, y in b only; x and y are related, a and b similar.
SMALL = graph_tables(
    {"a": "text a", "b": "text b"},
    entities=["e:x", "e:y", "e:alone"],
    mentions=[("e:x", "a"), ("e:x", "b"), ("e:y", "b")],
    related=[("e:x", "e:y", 0.5)],
    similar=[("a", "b", 0.25)],
)


def dense(matrix: sparse.csr_array) -> list[list[float]]:
    return matrix.toarray().tolist()


def read(index: Index) -> Adjacency:
    return adjacency(Batch(index, []), Counters())


def test_the_adjacency_is_what_the_store_holds(tmp_path: Path) -> None:
    graph = read(hand_index(SMALL, tmp_path, {"a": 0.5, "b": 0.4}))

    assert ["e:x", "e:y"] == list(graph.entities)  # an entity without edges has no part in a walk
    assert [[1, 1], [0, 1]] == dense(graph.mentions)
    assert [[0, 0.5], [0.5, 0]] == dense(graph.related)
    assert [[0, 0.25], [0.25, 0]] == dense(graph.similar)
    assert ([2, 1], 5) == (graph.frequency.tolist(), graph.rows)


def test_transitions_by_hand(tmp_path: Path) -> None:
    """One mention edge weighs idf/√df: idf = ln((n + 1)/df) + 1 with n = 2 chunks."""
    graph = read(hand_index(SMALL, tmp_path, {"a": 0.5, "b": 0.4}))
    x = (math.log(3 / 2) + 1) / math.sqrt(2)
    y = math.log(3 / 1) + 1

    # Nodes: x, y, a, b. Mention weight 2, related 3 · .5, similar 4 · .25.
    weights = np.array([[0, 1.5, 2 * x, 2 * x], [1.5, 0, 0, 2 * y], [2 * x, 0, 0, 1], [2 * x, 2 * y, 1, 0]])
    assert np.allclose(weights / weights.sum(axis=0), transitions(graph, 2.0, 3.0, 4.0).toarray())


@settings(max_examples=25)
@given(graph=plain_graphs(), weights=st.tuples(*[st.sampled_from([0.0, 0.5, 2.0])] * 3))
def test_transitions_are_column_stochastic_but_for_nodes_without_edges(
    tmp_path_factory: pytest.TempPathFactory, graph: PlainGraph, weights: tuple[float, float, float]
) -> None:
    index = hand_index(graph.tables(), tmp_path_factory.mktemp("walk"), dict.fromkeys(graph.chunks, 0.5))
    walk = transitions(read(index), *weights)

    columns = np.asarray(walk.sum(axis=0)).ravel()
    assert np.all(np.isclose(columns, 1.0) | (columns == 0.0))
    assert walk.shape[0] == len(read(index).entities) + len(graph.chunks)
    assert (walk.data > 0).all()


def random_walk(seed: int, nodes: int) -> tuple[sparse.csr_array, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.uniform(size=(nodes, nodes)) * (generator.uniform(size=(nodes, nodes)) < 0.4), 1)
    whole = upper + upper.T
    degree = whole.sum(axis=0)
    return sparse.csr_array(np.divide(whole, degree, out=np.zeros_like(whole), where=degree > 0)), whole


@given(st.integers(0, 10_000), st.integers(3, 15), st.sampled_from([0.1, 0.3, 0.8]))
def test_power_iteration_is_personalised_pagerank(seed: int, nodes: int, restart: float) -> None:
    walk, whole = random_walk(seed, nodes)
    if not (whole.sum(axis=0) > 0).all():
        return  # networkx sends a dangling node's mass to the seeds, ours keeps it out of the walk
    preference = np.random.default_rng(seed).dirichlet(np.ones(nodes))

    mass = power_iteration(walk, preference[:, None], restart, 200)[:, 0]

    expected = networkx.pagerank(
        networkx.from_numpy_array(whole),
        alpha=1 - restart,
        personalization=dict(enumerate(preference)),
        tol=1e-12,
        max_iter=1000,
    )
    assert [expected[node] for node in range(nodes)] == pytest.approx(mass.tolist(), abs=1e-7)
    assert 1.0 == pytest.approx(mass.sum())


def test_a_walk_has_the_stated_number_of_steps_and_no_tolerance(index: Index) -> None:
    """networkx 3.6.1 stops by a tolerance, which on 1 of 3 graphs of 20,000 nodes swaps its ten best."""
    walk, _ = random_walk(7, 9)
    seeds = np.eye(9)[:, :2]
    expected = seeds
    for steps in range(1, 31):
        expected = (1.0 - 0.3) * walk @ expected + 0.3 * seeds
        assert np.array_equal(expected, power_iteration(walk, seeds, 0.3, steps))
    few, many = (make(f"pagerank[steps={steps}]").rank(Batch(index, ASKED[:1]), Counters()) for steps in (1, 15))
    assert many == make("pagerank").rank(Batch(index, ASKED[:1]), Counters()) != few


def test_mass_leaves_the_walk_only_at_dangling_nodes() -> None:
    walk = sparse.csr_array(np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]]))
    seeds = np.array([[0.5], [0.0], [0.5]])

    mass = power_iteration(walk, seeds, 0.2, 300)[:, 0]

    # Nodes 0 and 1 keep their half; of the dangling node's half only what returns is left: .2 · .5.
    assert (0.5, 0.1) == pytest.approx((mass[0] + mass[1], mass[2]))


def test_questions_walk_independently() -> None:
    walk, _ = random_walk(3, 10)
    seeds = np.random.default_rng(1).dirichlet(np.ones(10), 4).T

    together = power_iteration(walk, seeds, 0.15, 15)

    for column in range(4):
        alone = power_iteration(walk, seeds[:, column : column + 1], 0.15, 15)
        assert alone[:, 0].tolist() == together[:, column].tolist()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("label", ["pagerank", "pagerank[seed_chunks=0]", "pagerank[question_weight=0]"])
def test_seeds_sum_to_one(index: Index, monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    seen: list[np.ndarray[Any, Any]] = []

    def noted(walk: sparse.csr_array, seeds: np.ndarray[Any, Any], restart: float, steps: int) -> Any:
        seen.append(seeds)
        return power_iteration(walk, seeds, restart, steps)

    monkeypatch.setattr("hopbench.retrieval.strategies.pagerank.power_iteration", noted)
    make(label).rank(Batch(index, ASKED[:3]), Counters())

    assert np.allclose(1.0, np.concatenate(seen, axis=1).sum(axis=0))


def test_a_question_without_seeds_gets_its_initial_ranking(index: Index) -> None:
    (ranking,) = make("pagerank[seed_chunks=0,initial_weight=0]").rank(
        Batch(index, [Question("q", "what flows where?")]), Counters()
    )

    assert {"fill"} == {hit.origin for hit in ranking.hits}


def test_the_question_s_entities_draw_the_walk(index: Index) -> None:
    (ranking,) = make("pagerank[seed_chunks=0,initial_weight=0]").rank(Batch(index, ASKED[:1]), Counters())

    assert ["e:ed wood"] == ranking.notes["entities"]
    assert "p01" == ranking.hits[0].chunk_id
    assert {"p02", "p04"} <= {hit.chunk_id for hit in ranking.hits[:6]}


def test_the_graph_is_read_once_and_charged_to_every_batch(tmp_path: Path) -> None:
    index = built_index(plan_of(WORLD), tmp_path)
    first, second = Counters(), Counters()

    PageRank().rank(Batch(index, ASKED), first)
    PageRank().rank(Batch(index, ASKED[:1]), second)

    assert (2, 2) == (first.round_trips, second.round_trips)  # the adjacency and the names
    assert first.rows == second.rows > 0
    assert isinstance(index.store, CountingStore)
    assert [cypher.ADJACENCY, cypher.NAMES] == sorted(index.store.queries)


@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_the_local_walk_gives_the_whole_ones_ranking_within_what_it_says_is_lost(
    index: Index, monkeypatch: pytest.MonkeyPatch, least: float
) -> None:
    whole = make("pagerank").rank(Batch(index, ASKED), Counters())
    spent = Counters()
    monkeypatch.setattr(pagerank, "MAX_WHOLE_EDGES", 0)
    monkeypatch.setattr(pagerank, "MIN_MASS", least)

    local = make("pagerank").rank(Batch(index, ASKED), spent)

    for ours, theirs in zip(whole, local, strict=True):
        assert (theirs.notes["lost"] > 0.0) == (least > 0.0)
        if not least:
            assert [(hit.chunk_id, hit.score) for hit in ours.hits] == [
                (hit.chunk_id, hit.score) for hit in theirs.hits
            ]
            assert [hit.path for hit in ours.hits] == [hit.path for hit in theirs.hits]
    assert 0 < spent.edges_touched


@pytest.mark.parametrize(("seed", "least"), [(1, 0.0), (2, 1e-3), (3, 1e-2)])
def test_a_local_walk_misses_no_more_than_it_says(seed: int, least: float) -> None:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((60, 60)) * (rng.random((60, 60)) < 0.1), 1)
    weights += weights.T
    degree = weights.sum(axis=0)
    walk = sparse.csr_array(weights / np.where(degree > 0, degree, 1.0))
    seeds = np.zeros(60)
    seeds[[3, 40]] = 0.25, 0.75
    expected = power_iteration(walk, seeds[:, None], 0.15, 15)[:, 0]

    found = LocalWalk.over(walk).mass(np.array([3, 40]), np.array([0.25, 0.75]), 0.15, 15, least)

    missed = expected - found[np.arange(60)]
    assert missed.min() >= -1e-12
    assert missed.sum() <= found.lost + 1e-12
    assert (found.lost == 0.0) == (least == 0.0)
    assert not least or found.touched <= 15 / least
    assert 0.0 == float(found[10_000])

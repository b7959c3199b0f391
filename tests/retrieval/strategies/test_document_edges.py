"""Strategies follow links, order and sections of documents where a parameter says so, and say so in the path."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.graphs import graph_tables, hand_index

from hopbench.eval.explain._outcomes import Routes
from hopbench.eval.graph_quality import expansion_factors
from hopbench.eval.metrics.reach import reach
from hopbench.retrieval.graph.schema import LINKS_TO, NEXT, PART_OF
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.traversal.random_walk import transitions
from hopbench.retrieval.types import Counters, Hit, Question, Step


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A page `a` with the next section `b`, which is in `a`; `a` links to `c`, weakly to `d`; `c` is near `d`."""
    tables = graph_tables(
        {name: f"text {name}" for name in "abcd"},
        similar=[("c", "d", 0.8)],
        links=[("a", "c", 1.0), ("a", "d", 0.5)],
        following=[("a", "b")],
        above=[("b", "a")],
    )
    return hand_index(tables, tmp_path_factory.mktemp("linked"), {"a": 0.9, "b": 0.3, "c": 0.2, "d": 0.1})


def ranked(index: Index, label: str) -> tuple[dict[str, Hit], Counters]:
    """The hits of a label by chunk, without those that only complete the ranking."""
    counters = Counters()
    (ranking,) = make(label).rank(Batch(index, [Question("q", "what?")]), counters)
    return {hit.chunk_id: hit for hit in ranking.hits if hit.origin != "fill"}, counters


BASE = "graph_expansion[initial_k=1,{}]"


def test_expansion_follows_links_and_sections_by_their_weights(index: Index) -> None:
    without, few = ranked(index, BASE.format("use_similar=false"))
    assert {"a"} == without.keys()
    linked, more = ranked(index, BASE.format("link_weight=0.8,use_similar=false"))
    # A link weighs 0.8 · 1 and 0.8 · 0.5; chunk_weight 0.7 leaves 0.3 of it.
    assert {"a": 0.63, "c": 0.24, "d": 0.12} == pytest.approx({name: hit.score for name, hit in linked.items()})
    assert (Step(LINKS_TO, "a", "c", 0.8, 0.8),) == linked["c"].path
    assert few.round_trips + 1 == more.round_trips
    near, _ = ranked(index, BASE.format("section_weight=0.5,use_similar=false"))
    assert {"a", "b"} == near.keys()
    assert {NEXT, PART_OF} & {step.edge for step in near["b"].path}


def test_a_second_hop_goes_on_from_a_link_and_a_threshold_is_of_similar_chunks_alone(index: Index) -> None:
    found, _ = ranked(index, BASE.format("link_weight=0.4,max_depth=2,min_similarity=0.7,min_score=0"))
    assert (Step(LINKS_TO, "a", "c", 0.4, 0.4),) == found["c"].path
    assert (Step(LINKS_TO, "a", "d", 0.2, 0.2),) == found["d"].path
    only, _ = ranked(index, BASE.format("link_weight=0.4,max_depth=2,min_similarity=0.9,use_similar=true,min_score=0"))
    assert {"a", "c", "d"} == only.keys()


def test_the_walk_takes_links_and_sections_by_their_weights(index: Index) -> None:
    graph = adjacency(Batch(index, []), Counters())
    walk = transitions(graph, 1.0, 0.0, 2.0, 3.0, 0.5).toarray()
    # Chunks a, b, c, d: links 3 · 1 and 3 · 0.5 either way; NEXT and PART_OF 0.5 each; similar 2 · 0.8.
    weights = np.array([[0, 1, 3, 1.5], [1, 0, 0, 0], [3, 0, 0, 1.6], [1.5, 0, 1.6, 0]])
    assert np.allclose(weights / weights.sum(axis=0), walk)
    found, _ = ranked(index, "pagerank[seed_chunks=1,link_weight=3]")
    step = found["c"].path[-1]
    assert (LINKS_TO, "a", "c") == (step.edge, step.source, step.target)
    plain, _ = ranked(index, "pagerank[seed_chunks=1]")
    assert 0.0 == plain["c"].components["pagerank"]


def test_reach_and_explained_routes_count_them(index: Index) -> None:
    all_gold, _ = reach([[0], [1]], [[3], [2]], expansion_factors(index), 2)
    assert [[0, 1, 1], [0, 0, 1]] == all_gold.tolist()
    route = Routes(index, ["b"]).to("c")
    assert route is not None
    assert (2, LINKS_TO) == (route.hops, route.steps[-1].edge)
    assert Routes(index, ["b"], kinds=(LINKS_TO,)).to("c") is None


def test_neighborhood_adds_what_its_hybrid_chunks_link_to(index: Index) -> None:
    label = "neighborhood[initial_k=1,{}]"
    without, _ = ranked(index, label.format("max_graph_chunks=4"))
    assert {"a"} == without.keys()
    found, _ = ranked(index, label.format("link_weight=0.5,section_weight=0.2"))
    seed = found["a"].components["hybrid"]
    # beta 0.3 of the edge's weight times the seed's hybrid score: 0.5 · 1, 0.5 · 0.5 and 0.2 · 1.
    expected = {"c": 0.15 * seed, "d": 0.075 * seed, "b": 0.06 * seed}
    assert expected == pytest.approx({name: found[name].score for name in "cdb"})
    assert [(LINKS_TO, "a", "d", 0.5)] == [(s.edge, s.source, s.target, s.weight) for s in found["d"].path]

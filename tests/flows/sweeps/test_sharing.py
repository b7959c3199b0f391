"""What trials share changes nothing of them: rankings, provenance and costs are those of the trial alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.orchestration.steps import plain_steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.activation import Activation
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.graph_expansion import GraphExpansion
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.types import Counters, Question, Ranking

FLOORS = {
    (name, kind): floor
    for name in ("graph_expansion", "activation")
    for kind, floor in (("min_similarity", 0.5), ("min_strength", 0.3))
}


@pytest.fixture(scope="module")
def world(
    home_with_graph: Callable[[Path, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Index, list[Question]]:
    """hopworld with twelve of its questions, far apart."""
    home = Home(home_with_graph(tmp_path_factory.mktemp("home"), "hopworld")).prepare()
    options = GraphOptions(dataset="hopworld")
    benchmark = options.benchmark()
    graph = options.graph_plan(benchmark, home)
    index = open_index(options, graph, home)
    built_graph(graph, index, home, plain_steps)
    index.floors.update(FLOORS)
    every = max(1, len(benchmark.questions) // 12)
    return index, [question.question for question in benchmark.questions[::every]]


def configurations(depth: int) -> list[GraphExpansion]:
    values = ((0.5, 0.3, "product", 10), (0.7, 0.5, "product", 10), (0.8, 0.4, "max", 10), (0.6, 0.7, "product", 3))
    found = [
        GraphExpansion(max_depth=depth, min_similarity=near, min_strength=led, path_strength=path, initial_k=k)
        for near, led, path, k in values
    ]
    removed = [GraphExpansion(max_depth=depth, **{name: False}) for name in ("use_similar", "use_related")]
    return sorted([*found, *removed], key=lambda one: one.shared_work())


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_trials_that_share_their_walks_are_those_that_ran_alone(
    depth: int, world: tuple[Index, list[Question]]
) -> None:
    index, questions = world
    shared = Batch(index, questions)
    expanded = 0
    for strategy in configurations(depth):
        alone = ranked(strategy, Batch(index, questions, alone=True))
        together = ranked(strategy, shared)
        assert alone == together, strategy
        assert alone == ranked(strategy, shared)  # kept by now
        expanded += sum(hit.origin == "graph" for ranking in together[0] for hit in ranking.hits)
    assert expanded > 200


def test_pageranks_of_one_walk_are_those_that_ran_alone(world: tuple[Index, list[Question]]) -> None:
    index, questions = world
    shared = Batch(index, questions)
    walks = {"restart": 0.3}, {"question_weight": 0.5}, {"similar_weight": 0.3}, {"seed_chunks": 5}, {"steps": 4}
    for walk in ({}, *walks):
        for initial_weight in (0.0, 0.2):
            strategy = PageRank(initial_weight=initial_weight, **walk)
            assert ranked(strategy, Batch(index, questions, alone=True)) == ranked(strategy, shared), strategy


def test_activations_that_share_their_edges_are_those_that_ran_alone(world: tuple[Index, list[Question]]) -> None:
    index, questions = world
    changes = {"min_similarity": 0.5}, {"use_related": False}, {"min_strength": 0.3, "max_branches": 6}
    free = {"min_activation": 0.0, "tag_floor": 0.4}, {"max_tags": 0, "min_weight": 0.0, "max_depth": 2}
    reached = 0
    for change in ({}, *changes, *free):
        strategy = Activation(**change)
        alone = ranked(strategy, Batch(index, questions, alone=True))
        assert alone == ranked(strategy, Batch(index, questions)), strategy
        reached += sum(hit.origin == "graph" for ranking in alone[0] for hit in ranking.hits)
    assert reached > 100


def ranked(strategy: Strategy, batch: Batch) -> tuple[list[Ranking], Counters]:
    counters = Counters()
    rankings = strategy.rank(batch, counters)
    counters.stage_seconds.clear()
    return rankings, counters

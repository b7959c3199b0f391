"""No graph strategy keeps a private copy of the graph: its rows come from the store, and each read is counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.graphs import ASKED, WORLD, CountingStore, built_index, plan_of

from hopbench.retrieval.graph.schema import EDGE_ENDS
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.registry import make, registry
from hopbench.retrieval.types import Counters, Ranking

NAMES = registry().names()
GRAPH = [name for name in NAMES if registry().get(name).edges]


def edges(rankings: Sequence[Ranking]) -> set[str]:
    return {step.edge for ranking in rankings for hit in ranking.hits for step in hit.path}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return built_index(plan_of(WORLD), tmp_path)


def reads(index: Index) -> list[str]:
    assert isinstance(index.store, CountingStore)
    return index.store.queries


@pytest.mark.parametrize("name", NAMES)
def test_a_strategy_is_charged_for_every_read_and_no_other(index: Index, name: str) -> None:
    counters = Counters()

    make(name).rank(Batch(index, ASKED), counters)

    assert len(reads(index)) == counters.round_trips
    assert (counters.round_trips > 0) == (name in GRAPH)
    assert (counters.rows > 0) == (name in GRAPH)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_for_others_is_charged_as_it_would_cost_alone(index: Index, name: str) -> None:
    first, again = Counters(), Counters()
    make(name).rank(Batch(index, ASKED), first)
    before = len(reads(index))

    make(name).rank(Batch(index, ASKED), again)

    assert (first.round_trips, first.rows) == (again.round_trips, again.rows)
    assert before == len(reads(index))


@pytest.mark.parametrize("name", GRAPH)
def test_a_batch_costs_no_more_round_trips_than_its_dearest_question(index: Index, name: str) -> None:
    together = Counters()
    make(name).rank(Batch(index, ASKED), together)
    alone = []
    for question in ASKED:
        counters = Counters()
        make(name).rank(Batch(index, [question]), counters)
        alone.append(counters.round_trips)

    assert together.round_trips <= max(alone)


@pytest.mark.parametrize("name", GRAPH)
def test_edges_gone_from_the_store_are_gone_from_the_ranking(tmp_path: Path, name: str) -> None:
    import kglite

    label = f"{name}[min_similarity=.3]" if name == "graph_expansion" else name
    before = make(label).rank(Batch(built_index(plan_of(WORLD), tmp_path), ASKED), Counters())
    store = KgliteStore(tmp_path / "graphs", plan_of(WORLD).namespace)
    graph = kglite.load(str(store.path))
    graph.cypher("MATCH ()-[r:MENTIONED_IN|RELATED_TO|SIMILAR_TO]->() DELETE r")
    graph.save(str(store.path))

    after = make(label).rank(Batch(built_index(plan_of(WORLD), tmp_path), ASKED), Counters())

    assert edges(before) & set(registry().get(name).edges)
    assert not edges(after) & set(EDGE_ENDS)
    assert [list(map(repr, r.hits)) for r in before] != [list(map(repr, r.hits)) for r in after]

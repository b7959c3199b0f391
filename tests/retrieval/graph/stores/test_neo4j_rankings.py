"""Strategies on a Neo4j server: the rankings of the embedded store, in as few round trips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.retrieval.graph.stores.test_neo4j_plans import traversals_seek_ids
from tests.support.graphs import (
    ASKED,
    CountingStore,
    built_index,
    fresh,
    neo4j_namespaces,
    plan_of,
)

from hopbench.eval.benchmarks import load_benchmark, load_triples
from hopbench.eval.types import Benchmark
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.graph.stores.contents import copy_graph
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.index.cache import IndexCache
from hopbench.retrieval.strategies.entity_expansion import EntityExpansion
from hopbench.retrieval.strategies.registry import make, resolve
from hopbench.retrieval.types import Counters, Question

pytestmark = pytest.mark.neo4j


def test_adr_041s_query_as_pasted_finds_what_the_strategy_ranks(world: tuple[Index, Index]) -> None:
    found = []
    for index in world:
        strategy = EntityExpansion()
        ((query, parameters),) = strategy.pasteable(Batch(index, ASKED[:1]))
        rows = index.store.read(query, **{k: v for k, v in parameters.items() if k != "namespace"})
        (ranking,) = strategy.rank(Batch(index, ASKED[:1]), Counters())
        counts = {hit.chunk_id: hit.components["entity_count"] for hit in ranking.hits if hit.origin != "fill"}
        assert counts == {row["id"]: float(row["entity_count"]) for row in rows}
        texts = {chunk.id: chunk.content for chunk in index.chunks}
        assert [texts[row["id"]] for row in rows] == [row["chunk_text"] for row in rows]
        assert all(len(row["matched_entities"]) == row["entity_count"] for row in rows)
        found.append([(row["id"], sorted(row["matched_entities"])) for row in rows])

    assert found[0] == found[1]
    assert found[0]


def test_a_hop_of_a_batch_is_one_round_trip_of_the_driver(
    world: tuple[Index, Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    from neo4j import ManagedTransaction

    sent: list[str] = []
    run = ManagedTransaction.run

    def counted(self: ManagedTransaction, query: Any, *args: Any, **kwargs: Any) -> Any:
        if query != cypher.BUILD_RECORD:  # what the index is, not what a question asks; read once
            sent.append(query)
        return run(self, query, *args, **kwargs)

    monkeypatch.setattr(ManagedTransaction, "run", counted)
    for label, strategy in resolve("all,all:tuned").items():
        counts = []
        for questions in (ASKED[:3], ASKED[:3] * 5):
            sent.clear()
            counters = Counters()
            strategy.rank(Batch(fresh(world[1], world[1].store), questions), counters)
            counts.append(len(sent))
            assert len(sent) == counters.round_trips, label
        assert counts[0] == counts[1], f"{label}: more questions must not cost more round trips"
    for label, hops in HOPS.items():
        sent.clear()
        make(label).rank(Batch(fresh(world[1], world[1].store), ASKED), Counters())
        assert hops == [sum(text == query for query in sent) for text in TRAVERSALS], label


TRAVERSALS = [cypher.EXPANSION_HOP, cypher.ENTITY_NEIGHBOURS, cypher.ACTIVATION_HOP, cypher.RELATED_ENTITIES]
TRAVERSALS += [cypher.NEIGHBORHOOD_HOP]
# How often each of TRAVERSALS is sent for the whole batch: once a hop.
HOPS = {
    "graph_expansion": [1, 0, 0, 0, 0],
    "graph_expansion[initial_k=1,max_depth=2,max_expanded=200,min_similarity=.3,min_strength=0]": [2, 0, 0, 0, 0],
    "activation[max_depth=1]": [0, 0, 1, 0, 0],
    "activation[max_depth=3,min_activation=0]": [0, 0, 3, 0, 0],
    "entity_expansion": [0, 0, 0, 1, 0],
    "entity_expansion[hops=2]": [0, 0, 0, 2, 0],
    "neighborhood": [0, 0, 0, 0, 1],
    "neighborhood[max_hops=2]": [0, 0, 0, 0, 2],
}


def same_rankings(first: Index, second: Index, questions: list[Question]) -> None:
    for label, strategy in resolve("all,all:tuned").items():
        ours, theirs = (strategy.rank(Batch(index, questions), Counters()) for index in (first, second))
        for one, other in zip(ours, theirs, strict=True):
            assert (one.failure, other.failure) == (None, None)
            assert [(hit.chunk_id, round(hit.score, 9)) for hit in one.hits] == [
                (hit.chunk_id, round(hit.score, 9)) for hit in other.hits
            ], f"{label} {one.question_id}"
            assert [hit.path for hit in one.hits] == [hit.path for hit in other.hits], f"{label} {one.question_id}"


def test_rankings_are_the_embedded_stores(world: tuple[Index, Index]) -> None:
    same_rankings(*world, ASKED)


def both_stores(plan: GraphPlan, connection: Connection, folder: Path, questions: list[Question]) -> None:
    local = built_index(plan, folder)
    with neo4j_namespaces(connection) as opened:
        store = opened("parity")
        _, fresh_copy = copy_graph(Renamed(local.store, store.namespace), store, plan.embedder)
        assert fresh_copy
        assert isinstance(store, Neo4jStore)
        traversals_seek_ids(store)
        same_rankings(local, fresh(local, store), questions)


class Renamed:
    """A store under another namespace's name."""

    def __init__(self, inner: Any, namespace: str) -> None:
        self.inner, self.namespace = inner, namespace

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def part_of(benchmark: Benchmark, questions: int, passages: int) -> Benchmark:
    """The first questions of a benchmark, over their gold and the first passages."""
    asked = benchmark.questions[:questions]
    gold = {passage for question in asked for passage in question.gold}
    kept = tuple(p for number, p in enumerate(benchmark.passages) if number < passages or p.id in gold)
    return replace(benchmark, questions=asked, passages=kept)


# Questions and passages: a part of each benchmark, and in `make soak` all its passages.
SIZES = pytest.mark.parametrize("size", [(5, 120), pytest.param((100, 10_000), marks=pytest.mark.soak)], ids=str)


@SIZES
def test_rankings_are_the_embedded_stores_on_hopworld(
    size: tuple[int, int], neo4j_connection: Connection, tmp_path: Path
) -> None:
    world = part_of(load_benchmark("hopworld"), *size)
    plan = plan_of(world.passages, name="hopworld", embedder=get_embedder("wordllama"))
    both_stores(plan, neo4j_connection, tmp_path, [q.question for q in world.questions])


@pytest.mark.parametrize("size", [(3, 60), pytest.param((100, 10_000), marks=pytest.mark.soak)], ids=str)
@pytest.mark.benchmarks
def test_rankings_are_the_embedded_stores_with_ready_triples(
    size: tuple[int, int], neo4j_connection: Connection, benchmarks_dir: Path, tmp_path: Path
) -> None:
    whole = load_benchmark(str(benchmarks_dir / "2wiki-kg100"))
    bench = part_of(whole, *size)
    stated = load_triples(benchmarks_dir / "2wiki-kg100" / "kg" / "triples.jsonl", whole.titles)
    held = {passage.id for passage in bench.passages}
    triples = [triple for triple in stated if triple.passage_id in held]
    plan = plan_of(bench.passages, triples=triples, name="2wiki-kg100", embedder=get_embedder("wordllama"))
    both_stores(plan, neo4j_connection, tmp_path, [q.question for q in bench.questions])


def test_what_is_kept_of_a_servers_graph_is_read_until_the_database_changes(
    world: tuple[Index, Index], tmp_path: Path
) -> None:
    kept = IndexCache(tmp_path / "search" / "world")
    store = world[1].store
    assert isinstance(store, Neo4jStore)

    def ranked() -> tuple[list[list[str]], list[str]]:
        counting = CountingStore(store)
        batch = Batch(replace(fresh(world[1], counting), kept=kept), ASKED[:3])
        rankings = make("pagerank").rank(batch, Counters())
        return [[hit.chunk_id for hit in ranking.hits] for ranking in rankings], counting.queries

    first, sent = ranked()
    again, none = ranked()
    store._run("MERGE (n:Node:Build {namespace: $namespace, id: 'other'})")
    changed, resent = ranked()

    assert first == again == changed
    assert sorted(sent) == sorted(resent) == [cypher.ADJACENCY, cypher.NAMES]
    assert [] == none
    assert {"adjacency", "linker"} <= {folder.name for folder in (tmp_path / "search" / "world.neo4j").iterdir()}
    assert not (kept.folder / "adjacency").exists()

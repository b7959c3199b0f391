"""What only the Neo4j store promises: plans, round trips, interruptions, and the rankings of the embedded store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.graphs import (
    ASKED,
    WORLD,
    CountingStore,
    WordEmbedder,
    built_index,
    graph_tables,
    neo4j_namespaces,
    plain,
    plan_of,
)

from hopbench.eval.benchmarks import load_benchmark, load_triples
from hopbench.eval.types import Benchmark
from hopbench.retrieval.embedding import get_embedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.build.builder import build_graph
from hopbench.retrieval.graph.build.plan import GraphPlan
from hopbench.retrieval.graph.cypher import neo4j as texts
from hopbench.retrieval.graph.schema import CHUNK, EDGE_COLUMNS, ENTITY, NODE_COLUMNS
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.graph.stores.copy import copy_graph
from hopbench.retrieval.graph.stores.fingerprint import StoredTables, export, fingerprint
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.neo4j.connection import Connection
from hopbench.retrieval.graph.stores.neo4j.store import INDEX_SECONDS, Neo4jStore
from hopbench.retrieval.index import INDEX_VALUES, Batch, Index, Memo, ReadCache
from hopbench.retrieval.index.kept import KeptSearch
from hopbench.retrieval.search.exact import dense_top
from hopbench.retrieval.strategies.entity_expansion.strategy import EntityExpansion
from hopbench.retrieval.strategies.registry import make, resolve
from hopbench.retrieval.support.errors import InputError, StoreError
from hopbench.retrieval.traversal.neo4j_search import native_dense
from hopbench.retrieval.types import Counters, Question

pytestmark = pytest.mark.neo4j

RECORD = {"build_key": "k"}
SMALL = graph_tables(
    {"a": "text a", "b": "text b"},
    entities=["e:x", "e:y"],
    mentions=[("e:x", "a"), ("e:y", "b")],
    related=[("e:x", "e:y", 0.5)],
    similar=[("a", "b", 0.5)],
)
WIDE = graph_tables(
    {"a": "text a", "b": "text b", "c": "text c", "d": "text d"},
    entities=["e:w", "e:x", "e:y", "e:z"],
    mentions=[("e:x", "a"), ("e:x", "b"), ("e:y", "c"), ("e:z", "d"), ("e:w", "d")],
    related=[("e:w", "e:x", 0.5), ("e:w", "e:z", 0.25), ("e:y", "e:z", 0.75)],
    similar=[("a", "b", 0.5), ("a", "d", 0.25), ("c", "d", 0.75)],
)


@pytest.fixture
def store(neo4j_connection: Connection) -> Iterator[Neo4jStore]:
    with neo4j_namespaces(neo4j_connection) as opened:
        small = opened("small")
        assert isinstance(small, Neo4jStore)
        yield small


def interrupted(store: Neo4jStore, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write SMALL, and fail in the batch number `after`."""
    whole, calls = Neo4jStore._batches, iter(range(100))

    def failing(self: Neo4jStore, *args: Any) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt
        whole(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Neo4jStore, "_batches", failing)
        with pytest.raises(KeyboardInterrupt):
            store.write(SMALL, RECORD)


@pytest.mark.parametrize("after", [0, 2, 5])
def test_an_interrupted_write_is_no_graph_and_the_next_one_completes_it(
    store: Neo4jStore, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(store, after, monkeypatch)
    assert store.record() is None

    monkeypatch.setattr(Neo4jStore, "drop", lambda _: pytest.fail("what stands is kept"))
    store.write(SMALL, RECORD)
    monkeypatch.undo()

    assert RECORD == store.record()
    assert fingerprint(SMALL) == fingerprint(export(store))


def test_what_another_build_left_is_replaced(store: Neo4jStore, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(store, 4, monkeypatch)
    other = graph_tables({"z": "only"})

    store.write(other, {"build_key": "other"})

    assert fingerprint(other) == fingerprint(export(store))


def test_an_interrupted_replacement_hides_the_old_graph(store: Neo4jStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(SMALL, {"build_key": "old"})

    interrupted(store, 1, monkeypatch)

    assert store.record() is None


PARAMETERS: Mapping[str, Any] = {
    "ids": ["e:x"],
    "rel_types": [],
    "limit": 5,
    "min_similarity": 0.0,
    "min_strength": 0.0,
    "min_mention": 0.0,
    "min_weight": 0.25,
    "min_activation": 0.0,
    "min_threshold": 0.0,
    "tag_sim_floor": 0.15,
    "query_tags": [],
    "query_tags_count": 0,
    "visited_ids": [],
    "seeds": [],
    "pairs": [],
    "ways": [],
    "frontier": [],
    "after": "",
    "until": "e:y",
    "nodes": 2,
    "usual": [],
}
WHOLE_GRAPH = {"BUILD_RECORD", "ADJACENCY", "NAMES", "DESCRIPTIONS", "RELATIONS"}
TEXTS = {name: text for name, text in vars(cypher).items() if isinstance(text, str) and name[0].isupper()}


WHOLE = [
    *(TEXTS[name] for name in sorted(WHOLE_GRAPH)),
    *map(cypher.export_nodes, NODE_COLUMNS),
    *map(cypher.export_edges, EDGE_COLUMNS),
]
PAGES = [part.page() for parts in cypher.PARTS.values() for part in parts]


def entries(store: Neo4jStore, query: str) -> list[str]:
    """Where the plan of a query enters the graph: its leaves that are no argument of what is outside."""
    with store._session() as session:
        summary = session.run(f"EXPLAIN {query}", {**PARAMETERS, "namespace": store.namespace}).consume()  # type: ignore[arg-type]
    found: list[str] = []
    left = [summary.plan]
    while left:
        step = left.pop()
        assert step is not None
        operator = step["operatorType"].partition("@")[0]
        children = step.get("children", [])
        if not children and operator not in {"Argument", "Unwind"}:
            found.append(f"{operator} {step['args'].get('Details', '')}")
        left += children
    return found


def test_every_query_is_entered_by_an_index_alone(store: Neo4jStore) -> None:
    store.write(SMALL, RECORD)

    for query in [*TEXTS.values(), *WHOLE, *PAGES, *map(texts.page_ends, NODE_COLUMNS)]:
        found = entries(store, query)
        assert found, query
        assert [entry for entry in found if not entry.startswith(("NodeIndexSeek ", "NodeUniqueIndexSeek "))] == []


def traversals_seek_ids(store: Neo4jStore) -> None:
    """Planned for a graph of real size, a traversal enters by the ids it is given, the rest by the namespace."""
    store._run(texts.REPLAN, seconds=INDEX_SECONDS)  # as writing such a graph does; these are smaller
    for name in sorted(TEXTS.keys() - WHOLE_GRAPH):
        for entry in entries(store, TEXTS[name]):
            assert re.match(r"Node(Unique)?IndexSeek .*\bid = [\w.]*id$", entry), f"{name}: {entry}"
    for query in WHOLE:
        for entry in entries(store, query):
            assert re.match(r"NodeIndexSeek .*\(namespace\) WHERE namespace = \$namespace$", entry), entry
    for query in PAGES:
        for entry in entries(store, query):
            assert re.match(
                r"Node(Unique)?IndexSeek .*\(namespace, id\) WHERE namespace = \$namespace AND id > ", entry
            ), entry
    for kind in EDGE_COLUMNS:
        for entry in entries(store, texts.write_edges(kind)):
            assert re.match(r"NodeUniqueIndexSeek.* WHERE namespace = \$namespace AND id = row\.", entry), entry


def test_writing_enters_by_ids_before_the_server_knows_how_many_there_are(store: Neo4jStore) -> None:
    store._prepare()

    for query in (*map(texts.write_edges, EDGE_COLUMNS), *map(texts.write_vectors, texts.VECTOR_INDEX)):
        for entry in entries(store, query):
            assert re.match(r"NodeUniqueIndexSeek.* WHERE namespace = \$namespace AND id = row\.", entry), entry


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_whole_graph_read_by_pages_is_the_one_read_at_once(
    store: Neo4jStore, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(WIDE, RECORD)
    usual: dict[str, Any] = {"usual": ["named_together"]}
    queries = {query: usual if query == cypher.RELATIONS else {} for query in cypher.PARTS}
    once = {query: contents(store.read(query, **parameters)) for query, parameters in queries.items()}

    monkeypatch.setattr("hopbench.retrieval.graph.stores.neo4j.store.PAGE_NODES", nodes)

    assert once == {query: contents(store.read(query, **parameters)) for query, parameters in queries.items()}
    assert len(list(store.read_parts(cypher.ADJACENCY))) >= 3 * (4 // nodes)
    assert fingerprint(WIDE) == fingerprint(StoredTables(store))


def contents(records: list[Record]) -> list[tuple[str, list[str]]]:
    """Records without the order of their rows, which a server does not promise."""
    rows = []
    for record in records:
        lists = {name: value for name, value in record.items() if "kind" in record and name != "kind"}
        length = max(map(len, lists.values()), default=1)
        full = [value or [None] * length for value in lists.values()] or [[sorted(record.items(), key=str)]]
        rows.append((str(record.get("kind")), sorted(map(repr, zip(*full, strict=True)))))
    return sorted(rows)


def fresh(index: Index, store: Any) -> Index:
    """The same index over another store, with nothing kept of what was read before."""
    return replace(index, store=store, reads=ReadCache(), memo=Memo(INDEX_VALUES))


@pytest.fixture
def world(neo4j_connection: Connection, tmp_path: Path) -> Iterator[tuple[Index, Index]]:
    """The small world on both stores: kglite's index and Neo4j's."""
    plan = plan_of(WORLD)
    local = built_index(plan, tmp_path)
    with neo4j_namespaces(neo4j_connection) as opened:
        store = opened("world")
        build_graph(plan, store, tmp_path / "staging", plain)
        yield local, fresh(local, store)


def test_document_4s_query_as_pasted_finds_what_the_strategy_ranks(world: tuple[Index, Index]) -> None:
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
        copied = copy_graph(Renamed(local.store, store.namespace), store, plan.embedder)
        assert copied.fresh
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
    kept = KeptSearch(tmp_path / "search" / "world")
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


def test_a_copy_comes_back_the_same(store: Neo4jStore, tmp_path: Path) -> None:
    first, last = KgliteStore(tmp_path / "first", store.namespace), KgliteStore(tmp_path / "last", store.namespace)
    first.write(SMALL, RECORD)

    there = copy_graph(first, store, WordEmbedder())
    back = copy_graph(store, last, WordEmbedder())

    assert there == back
    assert there.fingerprint == fingerprint(SMALL) == fingerprint(export(last))
    assert RECORD == last.record()
    assert not copy_graph(first, store, WordEmbedder()).fresh


def test_copying_nothing_or_something_changed_is_refused(store: Neo4jStore, tmp_path: Path) -> None:
    source = KgliteStore(tmp_path, store.namespace)
    with pytest.raises(InputError, match="kglite holds no complete graph"):
        copy_graph(source, store, WordEmbedder())

    source.write(SMALL, {"build_key": "k", "fingerprint": "another"})
    with pytest.raises(StoreError, match="not what was built"):
        copy_graph(source, store, WordEmbedder())


def test_the_vector_index_finds_what_exact_search_finds(world: tuple[Index, Index]) -> None:
    _, index = world
    assert isinstance(index.store, Neo4jStore)
    batch = Batch(index, ASKED)

    native = native_dense(index, batch.vectors, 5)

    # 12 chunks: an approximate index that visits all of them is exact
    for found, exact in zip(native, dense_top(batch.vectors, index.vectors, 5), strict=True):
        assert found.rows.tolist() == exact.rows.tolist()
        np.testing.assert_allclose(found.scores, exact.scores, atol=1e-6)


def test_the_vector_index_looks_further_where_other_graphs_are_nearer(
    world: tuple[Index, Index], neo4j_connection: Connection
) -> None:
    """The 60 nearest vectors are another graph's, and a third graph has vectors of another length."""
    _, index = world
    counted = fresh(index, CountingStore(index.store))
    batch = Batch(counted, ASKED[:1])
    crowd = graph_tables({f"x{number}": "crowd" for number in range(60)})
    no_names = np.zeros((0, 24), np.float32)
    with neo4j_namespaces(neo4j_connection) as opened:
        for name, vectors in (("crowd", np.tile(batch.vectors, (60, 1))), ("other", np.ones((60, 7), np.float32))):
            opened(name).write(replace(crowd, vectors={CHUNK: vectors, ENTITY: no_names}), RECORD)

        (found,) = native_dense(counted, batch.vectors, 5)

    (exact,) = dense_top(batch.vectors, index.vectors, 5)
    assert exact.rows.tolist() == found.rows.tolist()
    assert 2 == len(counted.store.queries)  # 20, then 80 nodes fetched


def test_vectors_are_kept_exactly(store: Neo4jStore) -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    store.write(replace(SMALL, vectors={CHUNK: vectors, ENTITY: vectors}), RECORD)

    rows = store.read(
        "MATCH (c:Chunk) WHERE c.namespace = $namespace RETURN c.id AS id, c.embedding AS vector ORDER BY id"
    )

    assert vectors.tolist() == [row["vector"] for row in rows]

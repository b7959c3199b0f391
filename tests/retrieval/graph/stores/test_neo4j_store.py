"""What only the Neo4j store promises: plans, round trips, interruptions, and the rankings of the embedded store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.graphs import (
    ASKED,
    CountingStore,
    WordEmbedder,
    fresh,
    graph_tables,
    neo4j_namespaces,
)

from hopbench.retrieval.graph.schema import CHUNK, ENTITY
from hopbench.retrieval.graph.stores.contents import copy_graph, export, fingerprint
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.exact import dense_top
from hopbench.retrieval.support.errors import InputError, StoreError
from hopbench.retrieval.traversal.neo4j_search import native_dense

pytestmark = pytest.mark.neo4j

RECORD = {"build_key": "k"}
SMALL = graph_tables(
    {"a": "text a", "b": "text b"},
    entities=["e:x", "e:y"],
    mentions=[("e:x", "a"), ("e:y", "b")],
    related=[("e:x", "e:y", 0.5)],
    similar=[("a", "b", 0.5)],
)


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


def test_a_copy_comes_back_the_same(store: Neo4jStore, tmp_path: Path) -> None:
    first, last = KgliteStore(tmp_path / "first", store.namespace), KgliteStore(tmp_path / "last", store.namespace)
    first.write(SMALL, RECORD)

    there, fresh = copy_graph(first, store, WordEmbedder())

    assert (there, True) == (there, fresh) == copy_graph(store, last, WordEmbedder())
    assert there["fingerprint"] == fingerprint(SMALL) == fingerprint(export(last))
    assert RECORD == last.record()
    assert (there, False) == copy_graph(first, store, WordEmbedder())


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
        assert found.scores.tolist() == exact.scores.tolist()  # Neo4j's own scores of quantised vectors are off by .08


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

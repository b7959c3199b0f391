"""What every graph store promises. A new engine is one more entry of ENGINES."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from tests.support.graphs import PlainGraph, graph_tables, neo4j_namespaces, plain_graphs

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    ENTITY,
    LINKS_TO,
    LIST_COLUMNS,
    MENTIONED_IN,
    NEXT,
    NODE_COLUMNS,
    PART_OF,
    RELATED_TO,
    SIMILAR_TO,
    GraphTables,
)
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore, Record, rows_of
from hopbench.retrieval.graph.stores.contents import export, fingerprint
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.support.errors import InputError, StoreError
from hopbench.retrieval.types import Chunk

StoreAt = Callable[[str], GraphStore]
RECORD = {"build_key": "k", "nodes": {"Chunk": 3}, "build_seconds": 0.5, "odd": 'q"\\é'}

SMALL = graph_tables(
    {"a": "text a", "b": "text b", "c": "text c"},
    titles={"a": "Title A"},
    entities=["e:x", "e:y", "e:z"],
    mentions=[("e:x", "a"), ("e:x", "b"), ("e:y", "c")],
    related=[("e:y", "e:x", 0.75), ("e:y", "e:z", 0.25)],
    similar=[("a", "b", 0.5), ("b", "c", 0.25)],
)


def kglite_at(folder: Path) -> StoreAt:
    return lambda namespace: KgliteStore(folder, namespace)


ENGINES = ["kglite", "arrays", pytest.param("neo4j", marks=pytest.mark.neo4j)]


@pytest.fixture(params=ENGINES)
def store_at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreAt]:
    """Opens the engine's store of a namespace; several share one place."""
    if request.param == "kglite":
        yield kglite_at(tmp_path)
        return
    if request.param == "arrays":
        yield lambda namespace: ArrayStore(tmp_path, namespace)
        return
    with neo4j_namespaces(request.getfixturevalue("neo4j_connection")) as opened:
        yield opened


@pytest.fixture
def store(store_at: StoreAt) -> GraphStore:
    return store_at("one")


def rows(table: pd.DataFrame) -> list[tuple[object, ...]]:
    """A table's rows, sorted, lists as tuples."""
    plain = table.assign(**{name: table[name].map(tuple) for name in table.columns if name in LIST_COLUMNS})
    return sorted(plain.itertuples(index=False, name=None))


def assert_same(expected: GraphTables, found: GraphTables) -> None:
    for name, table in [*expected.nodes.items(), *expected.edges.items()]:
        other = found.nodes.get(name, found.edges.get(name))
        assert list(table.columns) == list(other.columns), name
        assert rows(table) == rows(other), name
    assert fingerprint(expected) == fingerprint(found)


def reopened(store: GraphStore) -> GraphStore:
    store.close()
    return store


def test_the_same_graph_comes_out_that_went_in(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    assert_same(SMALL, export(store))
    assert_same(SMALL, export(reopened(store)))


def test_there_is_no_record_before_a_graph_and_the_same_one_after(store: GraphStore) -> None:
    assert store.record() is None

    store.write(SMALL, RECORD)

    assert RECORD == store.record()
    assert RECORD == reopened(store).record()


def test_writing_replaces_and_writing_twice_is_writing_once(store: GraphStore) -> None:
    store.write(SMALL, RECORD)
    store.write(SMALL, RECORD)
    assert_same(SMALL, export(store))

    other = graph_tables({"z": "only"})
    store.write(other, {"build_key": "new"})

    assert_same(other, export(reopened(store)))
    assert {"build_key": "new"} == store.record()


def test_dropping_leaves_nothing_and_is_allowed_twice(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    store.drop()
    store.drop()

    assert store.record() is None


def test_namespaces_with_the_same_ids_do_not_see_each_other(store_at: StoreAt) -> None:
    other = graph_tables(
        {"a": "other a", "b": "other b"},
        entities=["e:x", "e:y"],
        mentions=[("e:y", "a"), ("e:x", "b")],
        related=[("e:x", "e:y", 1.0)],
        similar=[("a", "b", 1.0)],
    )
    one, two = store_at("one"), store_at("two")
    one.write(SMALL, RECORD)
    two.write(other, {"build_key": "two"})

    assert_same(SMALL, export(one))
    assert_same(other, export(two))
    assert hop_of(one, ["a"])["S"] == [("a", "b", 0.5)]
    assert hop_of(two, ["a"])["S"] == [("a", "b", 1.0)]

    one.drop()
    assert_same(other, export(two))
    assert {"build_key": "two"} == two.record()


ODD = ["1", "007", "1.5", "1e5", "true", "null", "None", "NaN", "2012-01-01", "", " ", "'", '"', "\\", "\\'", "`", "$x"]
ODD += ["{a}", "日本語", "🎉", "e\u0301", "é", "a\nb", "a\tb", "x" * 5000, "' OR 1=1 //", "[1, 2]", '["x"]', "\u202e"]


def test_any_text_stays_what_it_was(store: GraphStore) -> None:
    ids = [text or "empty" for text in ODD]
    tables = graph_tables(dict(zip(ids, ODD, strict=True)), titles=dict(zip(ids, ODD, strict=True)))
    tables.nodes[ENTITY] = pd.DataFrame(
        [(f"e:{text}", text, text, text, [text, "same"]) for text in ODD], columns=list(NODE_COLUMNS[ENTITY])
    )  # type: ignore[index]
    mentions = [(f"e:{text}", chunk, 1, 0.5, [text]) for text, chunk in zip(ODD, ids, strict=True)]
    tables.edges[MENTIONED_IN] = pd.DataFrame(mentions, columns=list(tables.edges[MENTIONED_IN]))  # type: ignore[index]
    store.write(tables, RECORD)

    assert_same(tables, export(reopened(store)))
    for text, chunk in zip(ODD, ids, strict=True):
        (record,) = store.read(cypher.ENTITY_CHUNKS, ids=[f"e:{text}"])
        assert [chunk] == record["target"], text


def test_ids_that_look_like_numbers_alone_stay_texts(store: GraphStore) -> None:
    tables = graph_tables({"1": "11", "2": "22"}, similar=[("1", "2", 0.5)])
    store.write(tables, RECORD)

    assert_same(tables, export(reopened(store)))
    assert [("1", "2", 0.5)] == hop_of(store, ["1"])["S"]


EMPTIES = {
    "nothing": graph_tables({}),
    "chunks": graph_tables({"a": "x", "b": "y"}),
    "entities without edges": graph_tables({"a": "x"}, entities=["e:x"]),
    "mentions": graph_tables({"a": "x"}, entities=["e:x"], mentions=[("e:x", "a")]),
}


@pytest.mark.parametrize("name", EMPTIES)
def test_a_graph_may_lack_any_kind_of_node_and_edge(
    store: GraphStore, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    store.write(EMPTIES[name], RECORD)
    assert_same(EMPTIES[name], export(store))

    assert_same(EMPTIES[name], export(reopened(store)))
    assert RECORD == store.record()
    assert {**NOWHERE, "E": [("a", "e:x", 1.0)] if name == "mentions" else []} == hop_of(store, ["a"])
    assert ("", "") == tuple(capfd.readouterr()), "the engine talks to the terminal"


def hop_of(store: GraphStore, ids: Sequence[str], **thresholds: float) -> dict[str, list[tuple[str, str, float]]]:
    """One expansion hop: sorted (source, target, weight) by kind."""
    found: dict[str, list[tuple[str, str, float]]] = {"S": [], "E": [], "R": [], "M": []}
    limits = {"min_similarity": 0.0, "min_strength": 0.0, **thresholds}
    for record in store.read(cypher.EXPANSION_HOP, ids=list(ids), **limits):
        found[record["kind"]] += zip(record["source"], record["target"], record["weight"], strict=True)
    return {kind: sorted(edges) for kind, edges in found.items()}


NOWHERE: Mapping[str, list[tuple[str, str, float]]] = {"S": [], "E": [], "R": [], "M": []}


def test_a_hop_goes_both_ways_over_similar_and_related(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    assert {
        "S": [("b", "a", 0.5), ("b", "c", 0.25)],
        "E": [("b", "e:x", 1.0)],
        "R": [("e:x", "e:y", 0.75)],
        "M": [("e:y", "c", 1.0)],
    } == hop_of(store, ["b"])
    assert {
        "S": [("c", "b", 0.25)],
        "E": [("c", "e:y", 1.0)],
        "R": [("e:y", "e:x", 0.75), ("e:y", "e:z", 0.25)],
        "M": [("e:x", "a", 1.0), ("e:x", "b", 1.0)],
    } == hop_of(store, ["c"])


def test_edges_of_documents_come_out_and_are_walked_both_ways(store: GraphStore) -> None:
    tables = graph_tables(
        {"a": "text a", "b": "text b", "c": "text c"},
        links=[("a", "b", 1.0), ("b", "a", 0.5), ("c", "a", 0.5)],
        following=[("a", "b")],
        above=[("b", "c")],
    )
    store.write(tables, RECORD)

    assert_same(tables, export(store))
    hop = {record["kind"]: record for record in store.read(cypher.DOCUMENT_HOP, ids=["a"]) if len(record["source"])}
    assert {LINKS_TO: [("b", 0.5), ("b", 1.0), ("c", 0.5)], NEXT: [("b", 1.0)]} == {
        kind: sorted(zip(one["target"], one["weight"], strict=True)) for kind, one in hop.items()
    }
    walked = {record["kind"]: len(record["source"]) for record in store.read(cypher.ADJACENCY)}
    assert (3, 1, 1) == (walked[LINKS_TO], walked[NEXT], walked[PART_OF])
    assert fingerprint(tables) != fingerprint(graph_tables({"a": "text a", "b": "text b", "c": "text c"}))


def test_thresholds_are_inclusive(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    assert [("b", "a", 0.5)] == hop_of(store, ["b"], min_similarity=0.5)["S"]
    assert [("e:y", "e:x", 0.75)] == hop_of(store, ["c"], min_strength=0.75)["R"]


def test_missing_seeds_lead_nowhere_and_do_not_disturb_others(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    assert NOWHERE == hop_of(store, ["no such chunk"])
    assert hop_of(store, ["b"]) == hop_of(store, ["no such chunk", "b"])
    assert NOWHERE == hop_of(store, [])


def test_a_hop_of_two_chunks_reads_what_they_share_once(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    together = hop_of(store, ["a", "b"])

    assert [("a", "e:x", 1.0), ("b", "e:x", 1.0)] == together["E"]
    assert hop_of(store, ["a"])["R"] == hop_of(store, ["b"])["R"] == together["R"] == [("e:x", "e:y", 0.75)]
    assert hop_of(store, ["a"])["M"] == together["M"] == [("e:y", "c", 1.0)]


def test_parallel_edges_and_self_loops_are_all_traversed(store: GraphStore) -> None:
    """The builders write neither, a graph from elsewhere may hold both: no engine may lose or invent one."""
    tables = graph_tables(
        {"a": "x", "b": "y"},
        entities=["e:x", "e:y"],
        mentions=[("e:x", "a"), ("e:y", "b")],
        related=[("e:x", "e:y", 0.5), ("e:x", "e:y", 0.75), ("e:x", "e:x", 1.0)],
        similar=[("a", "a", 1.0), ("a", "b", 0.5)],
    )
    store.write(tables, RECORD)

    found = hop_of(store, ["a"])

    assert {("a", "a", 1.0), ("a", "b", 0.5)} == set(found["S"])
    assert {("e:x", "e:x", 1.0), ("e:x", "e:y", 0.5), ("e:x", "e:y", 0.75)} == set(found["R"])
    assert [("e:x", "a", 1.0), ("e:y", "b", 1.0)] == found["M"]


def test_the_adjacency_has_every_edge_once(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    found = {
        record["kind"]: set(zip(record["source"], record["target"], record["weight"], strict=True))
        for record in store.read(cypher.ADJACENCY)
    }

    assert {
        MENTIONED_IN: {("e:x", "a", 1.0), ("e:x", "b", 1.0), ("e:y", "c", 1.0)},
        RELATED_TO: {("e:x", "e:y", 0.75), ("e:y", "e:z", 0.25)},
        SIMILAR_TO: {("a", "b", 0.5), ("b", "c", 0.25)},
    } == found


def test_the_stamp_stays_with_the_content_and_changes_with_it(store: GraphStore) -> None:
    store.write(SMALL, RECORD)
    first = store.stamp()
    assert first == reopened(store).stamp()

    store.write(graph_tables({"a": "other"}), RECORD)

    assert first != store.stamp()


def test_a_refused_query_is_a_store_error(store: GraphStore) -> None:
    store.write(SMALL, RECORD)

    with pytest.raises(StoreError, match=r"refused|does not parse Cypher"):
        store.read("MATCH (n RETURN n")


@pytest.mark.parametrize("keep", [0, 5, 100, -30], ids=["empty", "magic only", "beginning", "end cut"])
def test_a_damaged_file_names_itself_and_the_remedy(tmp_path: Path, keep: int) -> None:
    store = KgliteStore(tmp_path, "one")
    store.write(SMALL, RECORD)
    store.close()
    store.path.write_bytes(store.path.read_bytes()[:keep])

    with pytest.raises(StoreError, match=r"one\.kgl.*hopbench graph build --force"):
        store.record()

    store.drop()
    store.write(SMALL, RECORD)
    assert_same(SMALL, export(reopened(store)))


def test_garbage_and_folders_are_damaged_files_too(tmp_path: Path) -> None:
    (tmp_path / "garbage.kgl").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "folder.kgl").mkdir()

    for namespace in ("garbage", "folder"):
        with pytest.raises(StoreError, match="hopbench graph build"):
            KgliteStore(tmp_path, namespace).record()


def test_reading_a_graph_that_was_never_built_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere\.kgl"):
        KgliteStore(tmp_path, "nowhere").read(cypher.NAMES)


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(InputError, match=r"file/one\.kgl.*HOPBENCH_HOME"):
        KgliteStore(tmp_path / "file", "one").write(SMALL, RECORD)


@pytest.mark.parametrize(
    ("record", "expected"),
    [({"q": 0, "target": ["a", "b"], "weight": [1, 2]}, 2), ({"q": 0, "name": "abc"}, 1), ({"target": []}, 0), ({}, 1)],
)
def test_a_record_stands_for_as_many_rows_as_its_lists_are_long(record: Record, expected: int) -> None:
    assert expected == rows_of(record)


def survives(store: GraphStore, graph: PlainGraph) -> None:
    store.write(graph.tables(), RECORD)
    assert_same(graph.tables(), export(reopened(store)))
    assert len(graph.chunks) == len(store.read(cypher.EXPORTS[CHUNK]))


@settings(max_examples=40)
@given(plain_graphs())
def test_any_graph_survives_its_store(tmp_path_factory: pytest.TempPathFactory, graph: PlainGraph) -> None:
    survives(kglite_at(tmp_path_factory.mktemp("store"))("any"), graph)


@pytest.mark.neo4j
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plain_graphs())
def test_any_graph_survives_neo4j(neo4j_connection: Connection, graph: PlainGraph) -> None:
    with neo4j_namespaces(neo4j_connection) as opened:
        survives(opened("any"), graph)


def test_chunk_contents_are_what_embedders_read() -> None:
    assert "T. x" == Chunk("a", "a", 0, "T", "x").content
    assert "x" == Chunk("a", "a", 0, "", "x").content


def test_half_written_files_of_killed_writers_go_and_those_of_others_stay(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left, beside = (tmp_path / f"small.kgl.tmp.{process}.0" for process in (ended.pid, os.getppid()))
    other = tmp_path / f"other.kgl.tmp.{ended.pid}.0"
    for file in (left, beside, other):
        file.write_bytes(b"half")

    KgliteStore(tmp_path, "small").write(SMALL, RECORD)

    assert {beside, other, tmp_path / "small.kgl"} == set(tmp_path.iterdir())

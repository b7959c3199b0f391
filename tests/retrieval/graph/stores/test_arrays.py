"""The store of memory-mapped arrays: the embedded engine's records, query by query, and what damaged files give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.graphs import WordEmbedder, built_index, graph_tables, plain, plan_of

from hopbench.eval.benchmarks import load_benchmark
from hopbench.flows.graph.build import held_content
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.schema import CHUNK, MENTIONED_IN, RELATED_TO, SIMILAR_TO, GraphTables
from hopbench.retrieval.graph.stores.arrays.store import QUERIES, TABLES, ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore, Record
from hopbench.retrieval.graph.stores.contents import export, fingerprint, stored_tables
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies._dual_level_communities import descriptions
from hopbench.retrieval.strategies.registry import resolve
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.errors import StoreError
from hopbench.retrieval.support.texts import Texts, TextsOfRows
from hopbench.retrieval.traversal.adjacency import adjacency, mentioning
from hopbench.retrieval.types import Counters, Passage, Triple

SMALL = graph_tables(
    {"a": "text a", "b": "text b"}, entities=["e:x"], mentions=[("e:x", "a")], similar=[("a", "b", 0.5)]
)
PASSAGES = [
    Passage("p1", "Ada Lovelace", "Ada Lovelace worked with Charles Babbage. She wrote for the Analytical Engine."),
    Passage("p2", "Charles Babbage", "Charles Babbage designed the Analytical Engine in London."),
    Passage("p3", "London", "London is a city. Ada Lovelace lived in London, and Charles Babbage too."),
    Passage("p4", "Analytical Engine", "The Analytical Engine was never built. Charles Babbage planned it."),
]
TRIPLES = [
    Triple("p1", "Ada Lovelace", "worked with", "Charles Babbage"),
    Triple("p2", "Charles Babbage", "designed", "Analytical Engine", 0.8),
    Triple("p2", "Analytical Engine", "planned by", "Charles Babbage", 0.5, description="He planned it."),
    Triple("p3", "Ada Lovelace", "lived in", "London"),
    Triple("p3", "Charles Babbage", "lived in", "London", 0.9),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[GraphStore, ArrayStore]:
    """The same graph, with stated and guessed relations, in the embedded engine and as arrays."""
    folder = tmp_path_factory.mktemp("both")
    embedder = get_embedder("wordllama")
    plan = plan_of(PASSAGES, triples=TRIPLES, extractor="rules+triples", name="both", embedder=embedder)
    embedded = built_index(plan, folder).store
    arrays = ArrayStore(folder, embedded.namespace)
    arrays.write(stored_tables(embedded), {"build_key": "k"})
    return embedded, arrays


def as_text(value: Any) -> Any:
    return sorted(map(repr, value)) if isinstance(value, list) else value


def canonical(records: list[Record]) -> list[str]:
    """Records in an order of their own: parallel lists become a sorted list of rows."""
    rows = []
    for record in records:
        lists = {name: list(value) for name, value in record.items() if isinstance(value, (list, TextsOfRows))}
        alone = {name: value for name, value in record.items() if name not in lists}
        full = {name: value for name, value in lists.items() if value}
        if len(set(map(len, full.values()))) > 1:  # the types and statements of one edge are not parallel
            full = {name: [value] for name, value in full.items()}
        cells = [sorted(zip(full, map(as_text, row), strict=True)) for row in zip(*full.values(), strict=True)]
        rows.append(repr((sorted(alone.items()), sorted(map(repr, cells)), sorted(set(lists) - set(full)))))
    return sorted(rows)


ADA, BABBAGE, LONDON, ENGINE = "e:ada lovelace", "e:charles babbage", "e:london", "e:analytical engine"
IDS = [ADA, LONDON, "e:nobody", BABBAGE]
LIMITS: dict[str, Any] = {"min_strength": 0.2, "rel_types": []}
THRESHOLDS = {"min_similarity": 0.1, "min_strength": 0.1, "min_mention": 0.0}
ACTIVATION: dict[str, Any] = {**THRESHOLDS, "min_weight": 0.05, "min_activation": 0.1, "tagged": True}


def frontier(chunks: list[str], energy: float) -> dict[str, Any]:
    return {
        "q": 0,
        "seeds": [chunks[0], "no such chunk"],
        "visited": [chunks[1], ADA],
        "chunks": [{"id": chunk, "activation": energy} for chunk in [*chunks[:2], "no such chunk"]],
        "entities": [{"id": BABBAGE, "activation": energy}, {"id": "e:nobody", "activation": energy}],
    }


def asked(chunks: list[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """A name → a query with its parameters: each of `QUERIES` at least once."""
    typed = {**LIMITS, "rel_types": ["lived in"]}
    pairs = [{"id": first, "other_id": second} for first in IDS for second in (BABBAGE, ENGINE)]
    nodes = {"chunks": [*chunks[:2], "none"], "entities": IDS}
    return {
        "expansion": (
            cypher.EXPANSION_HOP,
            {"ids": [*chunks[:2], "none"], "min_similarity": 0.2, "min_strength": 0.2},
        ),
        "documents": (cypher.DOCUMENT_HOP, {"ids": [*chunks[:2], "none"]}),
        "neighbours": (
            cypher.ENTITY_NEIGHBOURS,
            {"frontier": [{"q": 3, "ids": IDS, "visited": [ADA]}], "min_strength": 0.1},
        ),
        "neighbours of several": (
            cypher.ENTITY_NEIGHBOURS,
            {
                "frontier": [
                    {"q": 0, "ids": [ADA], "visited": [ADA, BABBAGE, "e:nobody"]},
                    {"q": 1, "ids": ["e:nobody"], "visited": [ADA]},
                    {"q": 2, "ids": [], "visited": []},
                    {"q": 7, "ids": [BABBAGE, ADA], "visited": []},
                ],
                "min_strength": 0.0,
            },
        ),
        "related": (cypher.RELATED_ENTITIES, {"ids": IDS, **LIMITS}),
        "related of a type": (cypher.RELATED_ENTITIES, {"ids": IDS, **typed}),
        "chunks": (cypher.ENTITY_CHUNKS, {"ids": IDS}),
        "neighborhood": (cypher.NEIGHBORHOOD_HOP, {"ids": IDS, **LIMITS}),
        "neighborhood of a type": (cypher.NEIGHBORHOOD_HOP, {"ids": [ADA], **typed}),
        "cards": (cypher.ENTITY_CARDS, {"ids": IDS}),
        "strongest": (cypher.STRONGEST_RELATIONS, {"ids": IDS, **LIMITS, "limit": 2}),
        "stated": (cypher.STATED, {"pairs": pairs, "usual": ["stated", "implied", "named_together"]}),
        "search": (cypher.ENTITY_SEARCH, {"entities": [ADA, LONDON, "e:nobody"], "top_k": 3}),
        "activation": (cypher.ACTIVATION_HOP, {"frontier": [frontier(chunks, 1.0)], **ACTIVATION}),
        "weak activation": (cypher.ACTIVATION_HOP, {"frontier": [frontier(chunks, 0.2)], **ACTIVATION}),
        "no mentions": (
            cypher.ACTIVATION_HOP,
            {"frontier": [frontier(chunks, 1.0)], **ACTIVATION, "min_mention": 2.0, "tagged": False},
        ),
        "activation edges": (cypher.ACTIVATION_EDGES, {"frontier": [nodes], **THRESHOLDS}),
        "adjacency": (cypher.ADJACENCY, {}),
        "names": (cypher.NAMES, {}),
        "relations": (cypher.RELATIONS, {"usual": ["stated", "implied", "named_together"]}),
        "descriptions": (cypher.DESCRIPTIONS, {}),
    }


def test_every_query_gives_the_embedded_engines_records(both: tuple[GraphStore, ArrayStore]) -> None:
    embedded, arrays = both
    tables = export(embedded)
    queries = asked(sorted(tables.nodes[CHUNK]["id"]))
    assert {True, False} == {bool(stated) for stated in tables.edges[RELATED_TO]["statements"]}
    assert {*QUERIES, cypher.ENTITY_SEARCH} == {query for query, _ in queries.values()}

    for name, (query, parameters) in queries.items():
        if query == cypher.ENTITY_SEARCH:
            continue  # for a server's browser
        expected = canonical(embedded.read(query, **parameters))
        assert expected == canonical(arrays.read(query, **parameters)), name


def test_ids_are_found_together_as_one_by_one(both: tuple[GraphStore, ArrayStore]) -> None:
    nodes = both[1].graph.nodes["Entity"]
    wanted = [*reversed(list(nodes.ids)), "e:nobody", ADA, "", "é\udce9"]

    assert [-1 if (row := nodes.row(one)) is None else row for one in wanted] == nodes.rows(wanted).tolist()
    assert [*reversed(range(len(nodes)))] == nodes.rows(wanted).tolist()[: len(nodes)]
    assert [] == nodes.rows([]).tolist()


def test_wording_is_read_from_arrays_as_from_an_engine(both: tuple[GraphStore, ArrayStore]) -> None:
    chunks = chunk_passages(PASSAGES)
    embedder = get_embedder("wordllama")
    engine, mapped = (descriptions(Batch(Index.build(chunks, store, embedder), []), Counters()) for store in both)

    assert dict(engine.entities) == dict(mapped.entities)
    assert dict(engine.relations) == dict(mapped.relations)
    assert engine.rows == mapped.rows
    assert "none" == mapped.entities.get("e:nobody", "none")


def test_exports_are_read_whole_and_in_parts(both: tuple[GraphStore, ArrayStore]) -> None:
    embedded, arrays = both

    for query in TABLES:
        expected = canonical(embedded.read(query))
        assert expected == canonical(arrays.read(query))
        assert expected == canonical([record for part in arrays.read_parts(query) for record in part])
    assert fingerprint(stored_tables(embedded)) == fingerprint(stored_tables(arrays))


@pytest.mark.parametrize("same_rows", [True, False], ids=["rows of the graph", "rows of its own"])
def test_rankings_paths_and_costs_are_the_embedded_engines(same_rows: bool, tmp_path: Path) -> None:
    world = load_benchmark("hopworld")
    questions = [one.question for one in world.questions[:10]]
    gold = {passage for one in world.questions[:10] for passage in one.gold}
    passages = [one for number, one in enumerate(world.passages) if number < 250 or one.id in gold]
    plan = plan_of(passages, name="hopworld", embedder=get_embedder("wordllama"))
    local = built_index(plan, tmp_path)
    store = ArrayStore(tmp_path, local.store.namespace)
    store.write(stored_tables(local.store), {"build_key": "k"})
    mapped = Index(local.chunks, local.vectors, store, local.embedder)
    mapped.graph_ids = store.graph.nodes[CHUNK].ids if same_rows else None

    for label, strategy in resolve("all,all:tuned").items():
        spent = Counters(), Counters()
        ours, theirs = (
            strategy.rank(Batch(index, questions), counters)
            for index, counters in zip((local, mapped), spent, strict=True)
        )
        assert ours == theirs, label
        costs = [(one.round_trips, one.rows, one.edges_touched) for one in spent]
        assert costs[0] == costs[1], label


def test_a_record_reads_the_ids_of_chunks_where_they_are_asked_for(
    both: tuple[GraphStore, ArrayStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, arrays = both
    chunks = chunk_passages(PASSAGES)
    index, other = (Index.build(chunks, store, get_embedder("wordllama")) for store in (arrays, embedded))
    index.graph_ids = arrays.graph.nodes[CHUNK].ids
    lists = [record["target"] for record in arrays.read(cypher.ENTITY_CHUNKS, ids=[ADA, LONDON])]
    ids = [list(each) for each in lists]

    assert lists == ids
    assert ids == lists
    assert lists[0] != ids[1]
    assert repr(ids[0]) == repr(lists[0])
    assert ids[0][1:] == lists[0][1:]
    assert ids[0][-1] == lists[0][-1]
    expected = [chunks.index(next(c for c in chunks if c.id == one)) for each in ids for one in each]
    assert expected == other.rows(lists).tolist() == index.rows(ids).tolist()
    assert [] == index.rows([]).tolist() == other.rows(iter([])).tolist()
    with pytest.raises(KeyError, match="nobody"):
        index.rows([lists[0], ["nobody"]])
    monkeypatch.setattr(Texts, "many_encoded", lambda *_: pytest.fail("ids are read"))
    assert expected == index.rows(iter(lists)).tolist()


def written(folder: Path, tables: GraphTables = SMALL) -> ArrayStore:
    store = ArrayStore(folder, "one")
    store.write(tables, {"build_key": "k"})
    store.close()
    return store


@pytest.mark.parametrize("name", ["Chunk.content.utf8.bin", f"{SIMILAR_TO}.out.begins.bin", "Entity.rows.bin"])
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "missing"])
def test_a_damaged_file_names_itself_and_the_remedy(tmp_path: Path, name: str, cut: bool) -> None:
    store = written(tmp_path)
    file = store.path / name
    if cut:
        file.write_bytes(file.read_bytes()[:-1])
    else:
        file.unlink()

    for reading in (lambda: store.read(cypher.NAMES), store.record):
        with pytest.raises(StoreError, match=rf"one\.arrays.*{name} is not as it was written.*hopbench graph build"):
            reading()

    assert fingerprint(SMALL) == fingerprint(stored_tables(written(tmp_path)))


def test_a_flipped_bit_is_found_where_the_graph_is_read_anew(tmp_path: Path) -> None:
    store = written(tmp_path)
    file = store.path / f"{SIMILAR_TO}.out.others.bin"
    held = held_content(store, tmp_path)
    flipped = bytearray(file.read_bytes())
    flipped[0] ^= 1
    file.write_bytes(flipped)
    os.utime(file, ns=(1, 1))

    assert held["fingerprint"] == fingerprint(stored_tables(store))  # which is of the edges' table, not of its index
    store.check()
    for read in (lambda: store.check(content=True), lambda: held_content(store, tmp_path)):
        with pytest.raises(StoreError, match=rf"{file.name} is not as it was written.*hopbench graph build --force"):
            read()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99, "record": {}, "sizes": {}}'])
def test_a_damaged_description_is_a_damaged_graph(tmp_path: Path, text: str) -> None:
    store = written(tmp_path)
    (store.path / "graph.json").write_text(text)

    with pytest.raises(StoreError, match="hopbench graph build --force"):
        store.record()


@pytest.mark.parametrize("name", ["graph.json", "Chunk.vectors.npy", "Entity.rows.bin"])
def test_a_damaged_graph_is_built_again_with_a_notice(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(PASSAGES, name="cut")
    store = ArrayStore(tmp_path / "graphs", plan.namespace)
    record = build_graph(plan, store, tmp_path / "staging", plain)
    (store.path / name).write_bytes((store.path / name).read_bytes()[:-1])
    again = ArrayStore(tmp_path / "graphs", plan.namespace)

    assert again.chunk_vectors(chunk_passages(plan.passages)) is None
    assert record["fingerprint"] == build_graph(plan, again, tmp_path / "staging", plain)["fingerprint"]
    assert "It is built again" in capsys.readouterr().err
    assert again.chunk_vectors(chunk_passages(plan.passages)) is not None


def test_what_a_killed_write_leaves_is_no_graph_and_in_nobodys_way(tmp_path: Path) -> None:
    store = written(tmp_path)
    left = tmp_path / "one.arrays.partial"
    left.mkdir()
    (left / "Chunk.id.utf8.bin").write_bytes(b"half")

    assert {"build_key": "k"} == store.record()
    other = graph_tables({"z": "only"})
    written(tmp_path, other)

    assert fingerprint(other) == fingerprint(stored_tables(store))
    assert not left.exists()


@pytest.mark.parametrize("killed", [CHUNK, MENTIONED_IN, SIMILAR_TO])
def test_a_killed_write_leaves_the_graph_before_and_the_next_write_is_whole(tmp_path: Path, killed: str) -> None:
    store = written(tmp_path, graph_tables({"z": "only"}))

    class Killed(GraphTables):
        def parts(self, name: str) -> Iterator[pd.DataFrame]:
            if name == killed:
                raise KeyboardInterrupt
            return super().parts(name)

    with pytest.raises(KeyboardInterrupt):
        store.write(Killed(SMALL.nodes, SMALL.edges), {"build_key": "new"})
    assert {"build_key": "k"} == store.record()

    store.write(SMALL, {"build_key": "new"})

    assert fingerprint(SMALL) == fingerprint(stored_tables(store))
    store.check(content=True)
    assert ["one.arrays"] == [path.name for path in tmp_path.iterdir()]


def test_an_edge_to_a_node_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    tables = graph_tables({"a": "x"}, entities=["e:x"], mentions=[("e:x", "a"), ("e:x", "gone")])

    assert 1 == len(export(written(tmp_path, tables)).edges[MENTIONED_IN])


def test_edges_share_the_texts_of_their_lists(tmp_path: Path) -> None:
    tables = graph_tables(
        {"a": "x"}, entities=["e:x", "e:y", "e:z"], related=[("e:x", "e:y", 0.5), ("e:y", "e:z", 0.5)]
    )
    lists: list[list[str]] = [["owns", ""], []]
    rows: Mapping[str, Any] = {"types": lists}
    tables.edges[RELATED_TO] = tables.edges[RELATED_TO].assign(**rows)  # type: ignore[index]
    column = written(tmp_path, tables).graph.edges[RELATED_TO].columns["types"]

    read = column.many(np.array([0, 1, 0]))

    assert [*lists, lists[0]] == read
    assert read[0][0] is read[2][0]


def test_other_queries_are_refused_with_the_stores_that_answer_them(tmp_path: Path) -> None:
    store = written(tmp_path)

    with pytest.raises(StoreError, match=r"'MATCH \(n\) RETURN n'.*--store kglite or neo4j"):
        store.read("MATCH (n)\n RETURN n")
    assert {"k"} == {json.loads((store.path / "graph.json").read_text())["record"]["build_key"]}


def test_an_index_maps_the_vectors_of_its_chunks_and_of_no_others(tmp_path: Path) -> None:
    plan = plan_of(PASSAGES, name="mapped")
    store = ArrayStore(tmp_path / "graphs", plan.namespace)
    build_graph(plan, store, tmp_path / "staging", plain)
    chunks = chunk_passages(plan.passages)

    class Unasked(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            raise AssertionError(f"{len(texts)} texts are embedded again")

    index = Index.build(chunks, store, Unasked())

    assert index.graph_ids is store.graph.nodes[CHUNK].ids
    assert Index.build(chunks[1:], store, plan.embedder).graph_ids is None
    expected = plan.embedder.embed([chunk.content for chunk in chunks])
    assert np.allclose(expected, index.vectors, atol=1e-7)
    assert store.chunk_vectors(chunks[1:]) is None
    (store.path / "Entity.id.utf8.bin").write_bytes(b"cut")
    damaged = ArrayStore(tmp_path / "graphs", plan.namespace)
    assert damaged.chunk_vectors(chunks) is None
    build_graph(plan, damaged, tmp_path / "staging", plain)
    assert damaged.chunk_vectors(chunks) is not None
    store = damaged
    assert store.chunk_vectors(chunks[::-1]) is None
    assert ArrayStore(tmp_path, "nothing").chunk_vectors(chunks) is None


def test_a_full_disk_is_one_error_and_the_graph_before_stays(tmp_path: Path) -> None:
    store = written(tmp_path)
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from hopbench.retrieval.graph.stores.arrays.store import ArrayStore\n"
        "from hopbench.retrieval.graph.stores.contents import stored_tables\n"
        "from hopbench.retrieval.support.errors import IncompleteError\n"
        "folder = Path(sys.argv[1]); source = stored_tables(ArrayStore(folder, 'one')); list(source.parts('Chunk'))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5))\n"
        "try: ArrayStore(folder, 'one').write(source, {})\n"
        "except IncompleteError as error: sys.exit(0 if 'one.arrays' in str(error) else 9)"
    )

    assert 0 == subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode

    assert {"build_key": "k"} == store.record()
    assert fingerprint(SMALL) == fingerprint(stored_tables(store))


def test_mentions_of_a_few_entities_are_counted_as_in_the_whole_adjacency(
    both: tuple[GraphStore, ArrayStore],
) -> None:
    chunks = chunk_passages(PASSAGES)
    batches = [Batch(Index.build(chunks, store, get_embedder("wordllama")), []) for store in both]
    graph = adjacency(batches[0], Counters())
    entities = [*graph.entities, "e:nobody"]

    counted = [*graph.frequency.tolist(), 0]
    assert [counted, counted] == [mentioning(batch, entities) for batch in batches]


def test_vectors_of_a_graph_are_put_on_the_grid_where_they_do_not_stand_there(tmp_path: Path) -> None:
    plan = plan_of(PASSAGES, name="grid")
    store = ArrayStore(tmp_path / "graphs", plan.namespace)
    build_graph(plan, store, tmp_path / "staging", plain)
    file, chunks = store.path / "Chunk.vectors.npy", chunk_passages(plan.passages)
    np.save(file, (np.load(file) / np.float32(1.00001)).astype(np.float32))

    index = Index.build(chunks, ArrayStore(tmp_path / "graphs", plan.namespace), plan.embedder)

    assert np.array_equal(on_grid(np.load(file)), index.vectors)
    assert not np.array_equal(np.load(file), index.vectors)


def test_what_an_index_forgets_of_a_mapped_graph_is_computed_again(tmp_path: Path) -> None:
    plan = plan_of(PASSAGES, name="forgets")
    local, store = built_index(plan, tmp_path / "local"), ArrayStore(tmp_path / "graphs", plan.namespace)
    build_graph(plan, store, tmp_path / "staging", plain)
    mapped = Index.build(chunk_passages(plan.passages), store, plan.embedder)
    read = [adjacency(Batch(index, []), Counters()) for index in (local, mapped)]
    for index in (local, mapped):
        index.forget()

    assert adjacency(Batch(local, []), Counters()) is read[0]  # an engine would be asked again
    again = adjacency(Batch(mapped, []), Counters())
    assert again is not read[1]
    assert again.mentions.toarray().tolist() == read[1].mentions.toarray().tolist()

"""Graphs of others in which several relationships join a pair, or a node to itself: one edge a pair, none to itself."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.flows.cli.conftest import call, write_benchmark
from tests.retrieval.graph.stores.test_arrays import PASSAGES, TRIPLES, asked, canonical
from tests.support.graphs import ASKED, WORLD, built_index, fresh, plan_of

from hopbench.flows.graph.build import held_content
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.cypher import neo4j
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    EDGE_ENDS,
    ENTITY,
    MENTIONED_IN,
    RELATED_TO,
    SIMILAR_TO,
    WEIGHT_OF,
    GraphTables,
    Statement,
    encoded,
)
from hopbench.retrieval.graph.stores.contents import export
from hopbench.retrieval.graph.stores.graph_mapping import GraphMapping
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.mapped_store import MappedStore, joined_edges
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.registry import resolve
from hopbench.retrieval.types import Counters, Question

Rows = list[dict[str, Any]]
ENDS = "source", "target"


def several(kind: str, edge: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """An edge in two relationships: each has every second type and tag, one almost no weight and, if it may, turned."""
    first, second = dict(edge), dict(edge)
    for name in {"types", "tags"} & edge.keys():
        first[name], second[name] = edge[name][::2], edge[name][1::2] or edge[name]
    if kind in WEIGHT_OF:
        second[WEIGHT_OF[kind]] = 0.01 * edge[WEIGHT_OF[kind]]
    if "count" in edge:
        second["count"] = 1
    if kind in (RELATED_TO, SIMILAR_TO):
        second["source"], second["target"] = edge["target"], edge["source"]
    yield from (second, first, second)


def with_several(tables: GraphTables) -> dict[str, Rows]:
    """The edges of a graph, each in three relationships, and one of each entity and chunk to itself."""
    rows: dict[str, Rows] = {kind: table.to_dict("records") for kind, table in tables.edges.items()}
    found = {kind: [one for edge in edges for one in several(kind, edge)] for kind, edges in rows.items()}
    for kind, label in ((RELATED_TO, ENTITY), (SIMILAR_TO, CHUNK)):
        weight = {WEIGHT_OF[kind]: 1.0, "tags": ["self"]}
        found[kind] += [{"source": node, "target": node, **weight} for node in tables.nodes[label]["id"]]
    return found


def write(writer: Neo4jStore, tables: GraphTables, edges: Mapping[str, Rows], space: str) -> None:
    for label, table in tables.nodes.items():
        writer._run(
            f"UNWIND $rows AS r CREATE (n:{label} {{space: $space}}) SET n += r",
            space=space,
            rows=table.to_dict("records"),
        )
        writer._run(f"CREATE INDEX test_pairs_{label.lower()} IF NOT EXISTS FOR (n:{label}) ON (n.id)")
    for kind, rows in edges.items():
        source, target = EDGE_ENDS[kind]
        writer._run(
            f"UNWIND $rows AS r MATCH (a:{source} {{space: $space, id: r.source}}) "
            f"MATCH (b:{target} {{space: $space, id: r.target}}) CREATE (a)-[e:{kind}]->(b) SET e += r.properties",
            space=space,
            rows=[{"source": row["source"], "target": row["target"], "properties": properties(row)} for row in rows],
        )


def properties(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ENDS}


@pytest.fixture(params=["triples", "rules"])
def ours(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    """A graph of ours: with stated relations, or with those that rules find."""
    if request.param == "rules":
        return built_index(plan_of(WORLD), tmp_path)
    embedder = get_embedder("wordllama")
    plan = plan_of(PASSAGES, triples=TRIPLES, extractor="rules+triples", name="pairs", embedder=embedder)
    return built_index(plan, tmp_path)


@pytest.fixture
def theirs(ours: Index, neo4j_connection: Connection) -> Iterator[MappedStore]:
    """The same with several relationships for each edge."""
    space = f"test-{secrets.token_hex(6)}"
    writer = Neo4jStore(neo4j_connection, space)
    tables = export(ours.store)
    write(writer, tables, with_several(tables), space)
    mapping = GraphMapping(namespace_property="space", namespace=space)
    store = MappedStore(neo4j_connection, mapping, chunks=frozenset(ours.row_of), build_key="key")
    yield store
    store.close()
    writer._run("MATCH (n {space: $space}) DETACH DELETE n", space=space)
    for label in tables.nodes:
        writer._run(f"DROP INDEX test_pairs_{label.lower()} IF EXISTS")
    writer.close()


@pytest.mark.neo4j
@pytest.mark.parametrize("ours", ["triples"], indirect=True)
def test_every_query_gives_the_records_of_one_edge_a_pair(ours: Index, theirs: MappedStore) -> None:
    for name, (query, parameters) in asked(sorted(ours.row_of)).items():
        if name != "stated":  # of a relation that is stated twice, explain prints it once
            expected = canonical(ours.store.read(query, **parameters))
            assert expected == canonical(theirs.read(query, **parameters)), name


@pytest.mark.neo4j
def test_every_label_ranks_as_with_one_relationship_a_pair(ours: Index, theirs: MappedStore) -> None:
    index = fresh(ours, theirs)
    questions = [
        *ASKED,
        Question("ada", "Where did the designer of the Analytical Engine live?"),
    ]
    for label, strategy in resolve("all,all:tuned").items():
        expected, found = (strategy.rank(Batch(each, questions), Counters()) for each in (ours, index))
        for one, other in zip(expected, found, strict=True):
            assert (one.hits, one.graph_context) == (other.hits, other.graph_context), f"{label} {one.question_id}"


@pytest.mark.neo4j
def test_what_is_joined_and_left_out_is_counted(ours: Index, theirs: MappedStore) -> None:
    tables, record = export(ours.store), theirs.record()
    nodes, edges = tables.counts()
    more = ", ".join(f"{2 * edges[kind]:,} {kind}" for kind in (CONTAINS, MENTIONED_IN, SIMILAR_TO, RELATED_TO))

    assert edges == record["edges"]
    assert [
        f"--mapping: the graph has {more} relationships more than pairs of nodes: those of a pair count as one",
        f"--mapping: the graph has {nodes[CHUNK]} SIMILAR_TO, {nodes[ENTITY]} RELATED_TO relationships of a node to "
        "itself: they are left out",
    ] == record["joined"]
    assert record["fingerprint"] == held_content(theirs, Path())["fingerprint"]


@pytest.mark.neo4j
def test_a_run_on_such_a_graph_has_the_figures_of_ours(neo4j_connection: Connection, tmp_path: Path) -> None:
    bench, home, space = write_benchmark(tmp_path / "tiny"), tmp_path / "home", f"test-{secrets.token_hex(6)}"
    server = {f"NEO4J_{name.upper()}": str(getattr(neo4j_connection, name)) for name in ("uri", "username", "password")}
    ours = ["--dataset", bench, "--no-prefect"]
    labels = [*ours, "--strategies", "activation,graph_expansion,neighborhood,pagerank", "--no-ragas"]
    assert 0 == call("graph", "build", *ours, home=home).code
    (file,) = (home / "graphs").glob("*.kgl")
    tables = export(KgliteStore(home / "graphs", file.stem))
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(f"namespace: {{property: space, value: {space}}}\n", encoding="utf-8")
    theirs = ["--store", "neo4j", "--mapping", mapping]
    writer = Neo4jStore(neo4j_connection, space)
    try:
        write(writer, tables, with_several(tables), space)
        info = call("graph", "info", *ours[:2], *theirs, home=home, environment=server)
        runs = [
            call("run", *labels, *flags, "--out", tmp_path / name, home=home, environment=server)
            for name, flags in (("ours", []), ("theirs", theirs))
        ]
    finally:
        writer._run("MATCH (n {space: $space}) DETACH DELETE n", space=space)
        writer.close()
    found = [json.loads((tmp_path / name / "results.json").read_text())["strategies"] for name in ("ours", "theirs")]

    assert [0, 0, 0] == [done.code for done in (info, *runs)]
    assert found[0].keys() == found[1].keys()
    for label, entry in found[0].items():
        assert entry["metrics"] == found[1][label]["metrics"], label
    for done in (info, runs[1]):
        assert 2 == len(re.findall(r"--mapping: the graph has \d+ .*(?:count as one|are left out)", done.out)), done.out
    assert ["", "", ""] == [done.err for done in (info, *runs)]


def test_joined_edges_follow_the_builders_rule() -> None:
    edge = {"statements": [], "tags": []}
    owns = {"source": "b", "target": "a", "strength": 0.4, "types": ["owns"], "description": "b owns a.", **edge}
    runs = {"source": "a", "target": "b", "strength": 0.9, "types": ["runs"], "description": "", **edge}
    known = {"source": "a", "target": "b", "strength": 1.0, "types": ["named_together"], "description": "", **edge}
    itself = {**owns, "source": "a"}

    assert (
        [
            {
                "source": "a",
                "target": "b",
                "strength": 1.0,
                "types": ["named_together", "owns", "runs"],
                "description": "b owns a.",
                "statements": encoded(
                    [Statement("a", "runs", "b", "", 9.0), Statement("b", "owns", "a", "b owns a.", 4.0)]
                ),
                "tags": [],
            }
        ],
        3,
        1,
    ) == joined_edges(RELATED_TO, [owns, runs, known, itself, {**runs, "strength": 0.1}])
    assert ([{**owns, "strength": 0.7}], 1, 0) == joined_edges(RELATED_TO, [owns, {**owns, "strength": 0.7}])
    assert ([owns], 0, 0) == joined_edges(RELATED_TO, [owns])
    mention = {"source": "e", "target": "e", "count": 1, "weight": 1.0, "tags": ["x"]}  # an entity called as its chunk
    assert ([{**mention, "count": 3, "tags": ["x", "y"]}], 1, 0) == joined_edges(
        MENTIONED_IN, [{**mention, "count": 3}, {**mention, "tags": ["y"]}]
    )


def test_queries_that_are_not_hops_stay_as_they_are() -> None:
    assert [] == [query for query in cypher.PARTS if neo4j.one_each(query) != query]

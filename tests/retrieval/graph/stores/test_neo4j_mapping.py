"""A graph that somebody else built, read in its own words: the same rankings as from ours."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    ENTITY,
    MENTIONED_IN,
    NODE_COLUMNS,
    RELATED_TO,
    SIMILAR_TO,
    GraphTables,
)
from hopbench.retrieval.graph.stores.contents import export, fingerprint
from hopbench.retrieval.graph.stores.graph_mapping import ABSENT, GraphMapping, load_mapping
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.mapped_store import MappedStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import INDEX_VALUES, Batch, Index, Memo, ReadCache
from hopbench.retrieval.strategies.registry import resolve
from hopbench.retrieval.support.errors import HopBenchError, InputError, StoreError
from hopbench.retrieval.types import Counters

ADR_041 = """
namespace: {property: namespace_id, value: SPACE}
labels: {Entity: base, Chunk: chunk}
relationships: {RELATED_TO: RELATES_TO, SIMILAR_TO: null, CONTAINS: null}
properties:
  Chunk: {id: chunk_id, content: text, index: chunk_index}
  Entity: {id: entity_id, name: entity_name, type: entity_type}
  RELATED_TO: {strength: {property: weight, scale: 0.1}}
"""
SPREADING_ACTIVATION = """
namespace: {property: space, value: SPACE}
labels: {Entity: Concept, Chunk: Memory}
relationships: {RELATED_TO: RELATES, SIMILAR_TO: RELATES, MENTIONED_IN: RELATES, CONTAINS: null}
properties:
  RELATED_TO: {strength: weight}
  SIMILAR_TO: {similarity: weight}
"""
NONE: list[object] = []


def emptied(tables: GraphTables, kind: str) -> pd.DataFrame:
    return pd.DataFrame(NONE, columns=list(tables.edges[kind].columns))


def lists(table: pd.DataFrame) -> list[list[str]]:
    return [[] for _ in range(len(table))]


def in_adr_041(tables: GraphTables) -> GraphTables:
    """The content that an ADR-041 graph can hold: weights of 1 to 10, no tags, documents or similarities."""
    related, mentions = tables.edges[RELATED_TO], tables.edges[MENTIONED_IN]
    weight = (related["strength"] * 10).round().clip(1, 10)
    entities, chunks = tables.nodes[ENTITY], tables.nodes[CHUNK]
    return GraphTables(
        {
            DOCUMENT: pd.DataFrame(NONE, columns=list(NODE_COLUMNS[DOCUMENT])),
            CHUNK: chunks.assign(passage_id=chunks["id"], index=0),
            ENTITY: entities.assign(description="", aliases=lists(entities)),
        },
        {
            CONTAINS: emptied(tables, CONTAINS),
            SIMILAR_TO: emptied(tables, SIMILAR_TO),
            RELATED_TO: related.assign(
                strength=weight * 0.1, types=lists(related), description="", tags=lists(related)
            ),
            MENTIONED_IN: mentions.assign(count=1, weight=1.0, tags=lists(mentions)),
        },
    )


def in_spreading_activation(tables: GraphTables) -> GraphTables:
    """The content of a spreading activation graph: one type of edge, each with a weight and tags; no documents."""
    bare = in_adr_041(tables)
    related, mentions, similar = (tables.edges[kind] for kind in (RELATED_TO, MENTIONED_IN, SIMILAR_TO))
    edges = {
        CONTAINS: bare.edges[CONTAINS],
        SIMILAR_TO: similar,
        RELATED_TO: related.assign(types=lists(related), description=""),
        MENTIONED_IN: mentions.assign(count=1),
    }
    return GraphTables(bare.nodes, edges)


def write_adr_041(writer: Neo4jStore, tables: GraphTables, space: str) -> None:
    relations = tables.edges[RELATED_TO]
    weighted = relations.assign(weight=(relations["strength"] * 10).round().astype(int))
    for query, rows in (
        (
            "CREATE (:chunk {namespace_id: $space, chunk_id: r.id, text: r.content, chunk_index: 0})",
            tables.nodes[CHUNK],
        ),
        (
            "CREATE (:base {namespace_id: $space, entity_id: r.id, entity_name: r.name, entity_type: r.type})",
            tables.nodes[ENTITY],
        ),
        (
            "MATCH (e:base {namespace_id: $space, entity_id: r.source}) "
            "MATCH (c:chunk {namespace_id: $space, chunk_id: r.target}) CREATE (e)-[:MENTIONED_IN]->(c)",
            tables.edges[MENTIONED_IN],
        ),
        (
            "MATCH (e:base {namespace_id: $space, entity_id: r.source}) "
            "MATCH (x:base {namespace_id: $space, entity_id: r.target}) "
            "CREATE (e)-[:RELATES_TO {weight: r.weight}]->(x)",
            weighted,
        ),
    ):
        writer._run(f"UNWIND $rows AS r {query}", space=space, rows=rows.to_dict("records"))


def write_spreading_activation(writer: Neo4jStore, tables: GraphTables, space: str) -> None:
    for query, rows in (
        ("CREATE (:Memory {space: $space, id: r.id, content: r.content})", tables.nodes[CHUNK]),
        ("CREATE (:Concept {space: $space, id: r.id, name: r.name, type: r.type})", tables.nodes[ENTITY]),
        *(
            (
                f"MATCH (a:{source} {{space: $space, id: r.source}}) "
                f"MATCH (b:{target} {{space: $space, id: r.target}}) "
                f"CREATE (a)-[:RELATES {{weight: r.{weight}, tags: r.tags}}]->(b)",
                tables.edges[kind],
            )
            for kind, source, target, weight in (
                (MENTIONED_IN, "Concept", "Memory", "weight"),
                (RELATED_TO, "Concept", "Concept", "strength"),
                (SIMILAR_TO, "Memory", "Memory", "similarity"),
            )
        ),
    ):
        writer._run(f"UNWIND $rows AS r {query}", space=space, rows=rows.to_dict("records"))


def mapping_of(tmp_path: Path, text: str) -> GraphMapping:
    path = tmp_path / "mapping.yaml"
    path.write_text(text, encoding="utf-8")
    return load_mapping(path)


WORDS = {
    "spreading activation": (SPREADING_ACTIVATION, in_spreading_activation, write_spreading_activation, "space"),
    "ADR-041": (ADR_041, in_adr_041, write_adr_041, "namespace_id"),
}


@pytest.fixture(params=WORDS)
def words(request: pytest.FixtureRequest) -> str:
    """Whose names the graph is written in."""
    return str(request.param)


@pytest.fixture
def local(words: str, tmp_path: Path) -> Index:
    """Ours, with what the other graph can hold of it."""
    index = built_index(plan_of(WORLD), tmp_path)
    store = KgliteStore(tmp_path / "bare", "bare")
    store.write(WORDS[words][1](export(index.store)), {})
    return replace(index, store=store, reads=ReadCache(), memo=Memo(INDEX_VALUES))


@pytest.fixture
def theirs(words: str, local: Index, neo4j_connection: Connection, tmp_path: Path) -> Iterator[MappedStore]:
    """The same in their words, beside another namespace with the same ids."""
    text, _, write, key = WORDS[words]
    space = f"test-{secrets.token_hex(6)}"
    writer = Neo4jStore(neo4j_connection, space)
    tables = export(local.store)
    for name in (space, f"{space}-other"):
        write(writer, tables, name)
    mapping = mapping_of(tmp_path, text.replace("SPACE", space))
    store = MappedStore(neo4j_connection, mapping, chunks=frozenset(local.row_of), build_key="key")
    yield store
    store.close()
    writer._run(f"MATCH (n) WHERE n.{key} STARTS WITH $space DETACH DELETE n", space=space)
    writer.close()


def content(connection: Connection) -> list[object]:
    """How much of everything the server holds, and its schema."""
    store = Neo4jStore(connection, "none")
    counts = store.read(
        "MATCH (n) WITH count(n) AS nodes, sum(size(keys(n))) AS properties, sum(size(labels(n))) AS labels "
        "MATCH ()-[r]->() RETURN nodes, properties, labels, count(r) AS edges, sum(size(keys(r))) AS on_edges"
    )
    schema = store.read("SHOW INDEXES YIELD name RETURN collect(name) AS names")
    store.close()
    return [dict(row) for row in (*counts, *schema)]


@pytest.mark.neo4j
def test_strategies_rank_alike_on_a_graph_that_others_built_and_only_read_it(
    local: Index, theirs: MappedStore, neo4j_connection: Connection
) -> None:
    index = replace(local, store=theirs, reads=ReadCache(), memo=Memo(INDEX_VALUES))
    before = content(neo4j_connection)

    assert fingerprint(export(local.store)) == theirs.record()["fingerprint"]
    for label, strategy in resolve("all,all:tuned").items():
        ours, others = (strategy.rank(Batch(each, ASKED), Counters()) for each in (local, index))
        for one, other in zip(ours, others, strict=True):
            assert [(hit.chunk_id, hit.score, hit.path) for hit in one.hits] == [
                (hit.chunk_id, hit.score, hit.path) for hit in other.hits
            ], f"{label} {one.question_id}"
    assert before == content(neo4j_connection)


@pytest.mark.neo4j
def test_copies_of_relationships_and_those_of_a_node_to_itself_change_no_ranking(
    words: str, local: Index, theirs: MappedStore, neo4j_connection: Connection
) -> None:
    kinds, key = (
        {"spreading activation": ("RELATES",), "ADR-041": ("RELATES_TO", "MENTIONED_IN")}[words],
        WORDS[words][3],
    )
    writer = Neo4jStore(neo4j_connection, theirs.namespace)
    for kind in kinds:
        writer._run(
            f"MATCH (a)-[r:{kind}]->(b) WHERE a.{key} = $space "
            f"CREATE (a)-[s:{kind}]->(b) SET s = r, s.weight = r.weight / 2",
            space=theirs.namespace,
        )
    loops = f"MATCH (n) WHERE n.{key} = $space AND NOT n:chunk CREATE (n)-[:{kinds[0]} {{weight: 10}}]->(n)"
    writer._run(loops, space=theirs.namespace)
    writer.close()
    index = replace(local, store=theirs, reads=ReadCache(), memo=Memo(INDEX_VALUES))

    record = theirs.record()
    assert fingerprint(export(local.store)) == record["fingerprint"]
    assert 2 == len(record["joined"])
    for label, strategy in resolve("all,all:tuned").items():
        ours, others = (strategy.rank(Batch(each, ASKED), Counters()) for each in (local, index))
        assert [(one.hits, one.graph_context) for one in ours] == [
            (other.hits, other.graph_context) for other in others
        ], label


@pytest.mark.neo4j
@pytest.mark.parametrize("words", ["ADR-041"], indirect=True)
def test_it_is_only_read_and_must_be_the_corpus(theirs: MappedStore, neo4j_connection: Connection) -> None:
    with pytest.raises(InputError, match="never written"):
        theirs.write(GraphTables(), {})
    with pytest.raises(InputError, match="never removed"):
        theirs.drop()
    with pytest.raises(StoreError, match="AccessMode"):  # the server itself refuses: reads are read transactions
        theirs.read("CREATE (n:chunk) RETURN n")
    strange = MappedStore(neo4j_connection, theirs._mapping, chunks=frozenset({"p01"}))
    with pytest.raises(InputError, match=r"11 of the graph's 12 chunks.*'p02'"):
        strange.record()
    strange.close()
    nothing = MappedStore(neo4j_connection, replace(theirs._mapping, namespace="none"), chunks=frozenset())
    with pytest.raises(InputError, match="no chunks"):
        nothing.record()
    nothing.close()


def test_a_query_in_adr_041s_words(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, ADR_041)

    assert """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:`base` {`entity_id`: id})-[m:`MENTIONED_IN`]->(c:`chunk`)
  WHERE c.`namespace_id` = $namespace AND e.`namespace_id` = c.`namespace_id`
  RETURN collect(c.`chunk_id`) AS target, collect(coalesce(m.`weight`, 1.0)) AS weight
}
RETURN id, target, weight
""" == mapping.rewrite(cypher.ENTITY_CHUNKS)
    assert f"[r:`{ABSENT}`]" in mapping.rewrite(cypher.EXPORTS[SIMILAR_TO])
    assert "`weight` * 0.1" in mapping.rewrite(cypher.EXPANSION_HOP)


def test_an_edge_of_several_types_and_a_node_of_any_label_are_told_apart() -> None:
    """Where both types keep their weight under one name, each is compared with its own threshold."""
    mapping = GraphMapping(
        {"Entity": "base"},
        {"RELATED_TO": "RELATES"},
        {"RELATED_TO": {"strength": ("weight", 1.0)}, "Entity": {"id": ("key", 1.0)}},
    )

    assert (
        "MATCH (c:`base`)-[r:`RELATES`|`MENTIONED_IN`]-(d) "
        "WHERE CASE WHEN type(r) = 'RELATES' THEN coalesce(r.`weight`, 1.0) END > $x "
        "AND CASE WHEN type(r) = 'MENTIONED_IN' THEN coalesce(r.`weight`, 1.0) END > $y RETURN "
        "CASE WHEN type(r) = 'RELATES' THEN 'RELATED_TO' WHEN type(r) = 'MENTIONED_IN' THEN 'MENTIONED_IN' END, "
        "CASE WHEN d:`Document` THEN d.`id` WHEN d:`Chunk` THEN d.`id` WHEN d:`base` THEN d.`key` END, $namespace"
    ) == mapping.rewrite(
        "MATCH (c:Entity)-[r:RELATED_TO|MENTIONED_IN]-(d) WHERE r.strength > $x AND r.weight > $y "
        "RETURN type(r), d.id, d.namespace"
    )


def test_edges_of_one_name_are_told_apart_by_their_ends(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, SPREADING_ACTIVATION)
    mention = "type(r) = 'RELATES' AND startNode(r):`Concept` AND endNode(r):`Memory`"

    assert (
        f"MATCH (c:`Memory`)-[r:`RELATES`]-(d) WHERE CASE WHEN {mention} THEN coalesce(r.`weight`, 1.0) END > $x"
        " RETURN COUNT { (c)-[:`RELATES`]->(:`Memory`) }"
    ) == mapping.rewrite(
        "MATCH (c:Chunk)-[r:SIMILAR_TO|MENTIONED_IN]-(d) WHERE r.weight > $x RETURN COUNT { (c)-[:MENTIONED_IN]->() }"
    )


def test_a_mapping_of_nothing_changes_no_meaning() -> None:
    assert "MATCH (n:`Entity`) WHERE $namespace = $namespace\nRETURN n.`id` AS `id`" in GraphMapping().rewrite(
        cypher.EXPORTS[ENTITY]
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("labels: {Entitiy: base}", "Did you mean 'Entity'"),
        ("labels: {Entity: 'base) DETACH DELETE (n'}", "no name of a label"),
        ("labels: {Entity: 'a`b'}", "no name of a label"),
        ("labels: {Entity: 7}", "no name of a label"),
        ("properties: {Chunk: {idd: x}}", "Did you mean 'id'"),
        ("properties: {Chunk: {id: 'x y'}}", "no name of a label"),
        ("properties: {RELATED_TO: {strength: {property: weight, scale: 0}}}", "scale"),
        ("properties: {RELATED_TO: {strength: [weight]}}", "strength"),
        ("labels: {Entity: X, Chunk: X}", "must differ"),
        ("namespace: {property: 'a b', value: x}", "no name of a label"),
        ("label: {Entity: base}", "Did you mean 'labels'"),
        ("labels: base", "write the parts"),
        ("- a", "write the parts"),
        ("{", "cannot be read"),
    ],
)
def test_a_mapping_that_cannot_be_used_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(HopBenchError, match=words):
        mapping_of(tmp_path, text)


def test_a_mapping_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: no such file"):
        load_mapping(tmp_path / "nowhere.yaml")

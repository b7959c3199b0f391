"""A graph that somebody else built, read in its own words: the same rankings as from ours."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from retrieval.errors import HopBenchError, InputError
from retrieval.graph import cypher
from retrieval.graph.fingerprint import export, fingerprint
from retrieval.graph.kglite_store import KgliteStore
from retrieval.graph.mapped_store import MappedStore
from retrieval.graph.mapping import ABSENT, GraphMapping, Property
from retrieval.graph.neo4j_connection import Connection
from retrieval.graph.neo4j_store import Neo4jStore
from retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_COLUMNS,
    ENTITY,
    MENTIONED_IN,
    NODE_COLUMNS,
    RELATED_TO,
    SIMILAR_TO,
    GraphTables,
)
from retrieval.index import Batch, Index, ReadCache
from retrieval.strategies.registry import resolve
from retrieval.types import Counters
from tests.graphs import ASKED, WORLD, built_index, plan_of

DOCUMENT_4 = """
namespace: {property: namespace_id, value: SPACE}
labels: {Entity: base, Chunk: chunk}
relationships: {RELATED_TO: RELATES_TO, SIMILAR_TO: null, CONTAINS: null}
properties:
  Chunk: {id: chunk_id, content: text, index: chunk_index}
  Entity: {id: entity_id, name: entity_name, type: entity_type}
  RELATED_TO: {strength: {property: weight, scale: 0.1}}
"""
WRITE = """
UNWIND $chunks AS row CREATE (c:chunk {namespace_id: $space, chunk_id: row.id, text: row.content, chunk_index: 0})
"""
WRITE_ENTITIES = """
UNWIND $entities AS row CREATE (e:base {namespace_id: $space, entity_id: row.id, entity_name: row.name,
                                        entity_type: row.type})
"""
WRITE_MENTIONS = """
UNWIND $rows AS row MATCH (e:base {namespace_id: $space, entity_id: row.source})
MATCH (c:chunk {namespace_id: $space, chunk_id: row.target}) CREATE (e)-[:MENTIONED_IN]->(c)
"""
WRITE_RELATIONS = """
UNWIND $rows AS row MATCH (e:base {namespace_id: $space, entity_id: row.source})
MATCH (x:base {namespace_id: $space, entity_id: row.target}) CREATE (e)-[:RELATES_TO {weight: row.weight}]->(x)
"""


def mapping_of(tmp_path: Path, text: str) -> GraphMapping:
    path = tmp_path / "mapping.yaml"
    path.write_text(text, encoding="utf-8")
    return GraphMapping.load(path)


def bare(tables: GraphTables) -> GraphTables:
    """What document 4's graph can hold of a graph of ours: weights of 1 to 10, no tags, documents or similarities."""
    related, mentions = tables.edges[RELATED_TO], tables.edges[MENTIONED_IN]
    lists = [[] for _ in range(len(related))]
    weight = (related["strength"] * 10).round().clip(1, 10)
    entities, chunks = tables.nodes[ENTITY], tables.nodes[CHUNK]
    return GraphTables(
        {
            DOCUMENT: pd.DataFrame([], columns=list(NODE_COLUMNS[DOCUMENT])),
            CHUNK: chunks.assign(passage_id=chunks["id"], index=0),
            ENTITY: entities.assign(description="", aliases=[[] for _ in range(len(entities))]),
        },
        {
            CONTAINS: pd.DataFrame([], columns=list(EDGE_COLUMNS[CONTAINS])),
            SIMILAR_TO: pd.DataFrame([], columns=list(EDGE_COLUMNS[SIMILAR_TO])),
            RELATED_TO: related.assign(strength=weight * 0.1, types=lists, description="", tags=lists),
            MENTIONED_IN: mentions.assign(count=1, weight=1.0, tags=[[] for _ in range(len(mentions))]),
        },
    )


@pytest.fixture
def local(tmp_path: Path) -> Index:
    """Ours, with what document 4's graph holds."""
    index = built_index(plan_of(WORLD), tmp_path)
    store = KgliteStore(tmp_path / "bare", "bare")
    store.write(bare(export(index.store)), {})
    return replace(index, store=store, reads=ReadCache(), shared={})


@pytest.fixture
def theirs(local: Index, neo4j_connection: Connection, tmp_path: Path) -> Iterator[MappedStore]:
    """The same in document 4's words, beside another namespace with the same ids."""
    space = f"test-{secrets.token_hex(6)}"
    tables = export(local.store)
    writer = Neo4jStore(neo4j_connection, space)
    relations = tables.edges[RELATED_TO]
    weights = (relations["strength"] * 10).round().astype(int)
    for name in (space, f"{space}-other"):
        for query, rows in (
            (WRITE, {"chunks": tables.nodes[CHUNK].to_dict("records")}),
            (WRITE_ENTITIES, {"entities": tables.nodes[ENTITY].to_dict("records")}),
            (WRITE_MENTIONS, {"rows": tables.edges[MENTIONED_IN].to_dict("records")}),
            (WRITE_RELATIONS, {"rows": relations.assign(weight=weights).to_dict("records")}),
        ):
            writer._run(query, space=name, **rows)
    mapping = mapping_of(tmp_path, DOCUMENT_4.replace("SPACE", space))
    store = MappedStore(neo4j_connection, mapping, chunks=frozenset(local.row_of), build_key="key")
    yield store
    store.close()
    writer._run("MATCH (n) WHERE n.namespace_id STARTS WITH $space DETACH DELETE n", space=space)
    writer.close()


@pytest.mark.neo4j
def test_strategies_rank_alike_on_a_graph_that_others_built(local: Index, theirs: MappedStore) -> None:
    index = replace(local, store=theirs, reads=ReadCache(), shared={})

    assert fingerprint(export(local.store)) == theirs.record()["fingerprint"]
    for label, strategy in resolve("all,all:tuned").items():
        ours, others = (strategy.rank(Batch(each, ASKED), Counters()) for each in (local, index))
        for one, other in zip(ours, others, strict=True):
            assert [(hit.chunk_id, hit.score, hit.path) for hit in one.hits] == [
                (hit.chunk_id, hit.score, hit.path) for hit in other.hits
            ], f"{label} {one.question_id}"


@pytest.mark.neo4j
def test_it_is_only_read_and_must_be_the_corpus(theirs: MappedStore, neo4j_connection: Connection) -> None:
    with pytest.raises(InputError, match="never written"):
        theirs.write(GraphTables(), {})
    with pytest.raises(InputError, match="never removed"):
        theirs.drop()
    strange = MappedStore(neo4j_connection, theirs._mapping, chunks=frozenset({"p01"}))
    with pytest.raises(InputError, match=r"11 of the graph's 12 chunks.*'p02'"):
        strange.record()
    strange.close()
    nothing = MappedStore(neo4j_connection, replace(theirs._mapping, namespace="none"), chunks=frozenset())
    with pytest.raises(InputError, match="no chunks"):
        nothing.record()
    nothing.close()


def test_a_query_in_document_4s_words(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, DOCUMENT_4)

    assert """
UNWIND $ids AS id
CALL (id) {
  MATCH (e:`base` {`entity_id`: id})-[m:`MENTIONED_IN`]->(c:`chunk`)
  WHERE c.`namespace_id` = $namespace AND e.`namespace_id` = c.`namespace_id`
  RETURN collect(c.`chunk_id`) AS target, collect(coalesce(m.`weight`, 1.0)) AS weight
}
RETURN id, target, weight
""" == mapping.rewrite(cypher.ENTITY_CHUNKS)
    assert f"[r:`{ABSENT}`]" in mapping.rewrite(cypher.export_edges(SIMILAR_TO))
    assert "`weight` * 0.1" in mapping.rewrite(cypher.EXPANSION_HOP)


def test_an_edge_of_several_types_and_a_node_of_any_label_are_told_apart() -> None:
    """Where both types keep their weight under one name, each is compared with its own threshold."""
    mapping = GraphMapping(
        {"Entity": "base"},
        {"RELATED_TO": "RELATES"},
        {"RELATED_TO": {"strength": Property("weight")}, "Entity": {"id": Property("key")}},
    )

    assert (
        "MATCH (c:`base`)-[r:`RELATES`|`MENTIONED_IN`]-(d) "
        "WHERE CASE type(r) WHEN 'RELATES' THEN coalesce(r.`weight`, 1.0) END > $x "
        "AND CASE type(r) WHEN 'MENTIONED_IN' THEN coalesce(r.`weight`, 1.0) END > $y RETURN "
        "CASE type(r) WHEN 'RELATES' THEN 'RELATED_TO' WHEN 'MENTIONED_IN' THEN 'MENTIONED_IN' END, "
        "CASE WHEN d:`Document` THEN d.`id` WHEN d:`Chunk` THEN d.`id` WHEN d:`base` THEN d.`key` END, $namespace"
    ) == mapping.rewrite(
        "MATCH (c:Entity)-[r:RELATED_TO|MENTIONED_IN]-(d) WHERE r.strength > $x AND r.weight > $y "
        "RETURN type(r), d.id, d.namespace"
    )


def test_a_mapping_of_nothing_changes_no_meaning() -> None:
    assert "MATCH (n:`Entity`) WHERE $namespace = $namespace RETURN n.`id` AS `id`" in GraphMapping().rewrite(
        cypher.export_nodes(ENTITY)
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
        ("relationships: {RELATED_TO: X, SIMILAR_TO: X}", "must differ"),
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
    with pytest.raises(InputError, match=r"nowhere\.yaml cannot be read"):
        GraphMapping.load(tmp_path / "nowhere.yaml")

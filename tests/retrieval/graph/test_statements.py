"""Relations keep their direction: on the edge, in the stores, in the block, in what explain and the report show."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import numpy as np
import pytest
from tests.support.entity_graphs import index_of, with_names
from tests.support.graphs import WORLD, built_index, graph_tables, plan_of

from hopbench.eval.explain import Names, pairs_of, stated
from hopbench.retrieval.context import context_blocks
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO, RULE_RELATIONS, GraphTables, Statement, encoded, statements_of
from hopbench.retrieval.graph.stores.contents import copy_graph, export, fingerprint
from hopbench.retrieval.graph.stores.graph_mapping import GraphMapping
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.mapped_store import MappedStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import INDEX_VALUES, Batch, Index, Memo, ReadCache
from hopbench.retrieval.question.entities import read_cards
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies._dual_level_communities import descriptions
from hopbench.retrieval.strategies.neighborhood import Neighborhood
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Passage, Question, Step, Triple

DEPENDS = Statement("e:auth", "depends_on", "e:oauth", "Auth delegates to OAuth.", 8.0)
OWNED = Statement("e:oauth", "owned by", "e:auth", "", 3.0)


def unpacked(statements: list[str]) -> list[tuple[str, str, str]]:
    return [(one["subject"], one["type"], one["object"]) for one in map(json.loads, statements)]


def test_a_statement_reads_from_either_end() -> None:
    assert ("depends_on", "e:oauth") == (DEPENDS.seen_from("e:auth"), DEPENDS.other("e:auth"))
    assert ("inverse of depends_on", "e:auth") == (DEPENDS.seen_from("e:oauth"), DEPENDS.other("e:oauth"))
    together = Statement("e:auth", "named_together", "e:oauth", directed=False)
    assert "named_together" == together.seen_from("e:oauth") == together.seen_from("e:auth")
    assert together.key == Statement("e:oauth", "named_together", "e:auth", directed=False).key
    assert DEPENDS.key != Statement("e:oauth", "depends_on", "e:auth", "Auth delegates to OAuth.").key


def test_what_was_encoded_is_decoded_strongest_first_whatever_the_edge_s_ends() -> None:
    kept = encoded([OWNED, DEPENDS])

    assert [DEPENDS, OWNED] == statements_of("e:oauth", "e:auth", 0.8, ["x"], "y", kept)


def test_an_edge_without_statements_is_symmetric_where_rules_made_it_and_else_has_its_own_direction() -> None:
    assert [Statement("a", "named_together, stated", "b", "Said.", 5.0, directed=False)] == statements_of(
        "a", "b", 0.5, ["stated", "named_together"], "Said.", []
    )
    assert [Statement("b", "uses", "a", "", 5.0)] == statements_of("b", "a", 0.5, ["uses"], "", None)
    assert [Statement("b", "", "a", "", 10.0)] == statements_of("b", "a", 1.0, [], "", ["no JSON", "{}", "[1]"])


SERVICES = [
    Passage("p1", "Auth Service", "The auth service delegates to the OAuth provider."),
    Passage("p2", "OAuth Provider", "The OAuth provider is an integration layer."),
    Passage("p3", "Zulu Store", "The zulu store keeps sessions."),
]
STATED = [
    Triple("p1", "OAuth Provider", "trusted by", "Auth Service", 0.3),
    Triple("p2", "OAuth Provider", "trusted by", "Auth Service", 0.4, description="OAuth is trusted."),
    Triple("p1", "Auth Service", "depends_on", "OAuth Provider", 0.8, description="Auth delegates."),
    Triple("p3", "Zulu Store", "used by", "Auth Service", 0.0),
]


def services(tmp_path: Path) -> Index:
    return built_index(plan_of(SERVICES, triples=STATED), tmp_path)


def block(index: Index, *entities: str, rel_types: tuple[str, ...] = ()) -> list[str]:
    """The lines about relations, of an entity's section and below the last heading."""
    batch = Batch(index, [Question("q", "?")])
    reader = linker(batch, Counters())
    cards = read_cards(batch, Counters(), reader, sorted(entities))
    (text,) = context_blocks(batch, Counters(), [entities], cards, rel_types=rel_types)
    text = text.replace("\n  ", " ")
    return [line for line in text.splitlines() if line.startswith(("Related", "- "))]


def test_every_stated_relation_stands_on_the_one_edge_of_its_pair(tmp_path: Path) -> None:
    edges = export(services(tmp_path).store).edges[RELATED_TO]

    assert [("e:auth service", "e:oauth provider", 0.8)] == list(
        zip(edges["source"], edges["target"], edges["strength"], strict=True)
    )
    # "trusted by" was stated twice: its weight is the higher one, its description the one that was given.
    assert [
        {"subject": "e:auth service", "type": "depends_on", "object": "e:oauth provider", "weight": 8.0}
        | {"description": "Auth delegates."},
        {"subject": "e:oauth provider", "type": "trusted by", "object": "e:auth service", "weight": 4.0}
        | {"description": "OAuth is trusted."},
    ] == [json.loads(one) for one in edges["statements"][0]]


def test_the_block_tells_each_relation_the_way_round_that_it_was_stated(tmp_path: Path) -> None:
    index = services(tmp_path)
    told = [
        '- Auth Service -> OAuth Provider: "depends_on" -- Auth delegates. (strength: 8)',
        '- OAuth Provider -> Auth Service: "trusted by" -- OAuth is trusted. (strength: 4)',
    ]

    assert ["Related: OAuth Provider (depends_on, inverse of trusted by, weight: 8)", *told] == block(
        index, "e:auth service"
    )
    assert ["Related: Auth Service (inverse of depends_on, trusted by, weight: 8)", *told] == block(
        index, "e:oauth provider"
    )
    assert ["Related: Auth Service (trusted by, weight: 8)", told[1]] == block(
        index, "e:oauth provider", rel_types=("trusted by",)
    )


def test_what_rules_found_together_has_no_direction_and_no_statements(tmp_path: Path) -> None:
    index = built_index(plan_of(WORLD), tmp_path)

    assert [[]] * 3 == export(index.store).edges[RELATED_TO]["statements"].tolist()[:3]
    lines = [line for line in block(index, "e:tim burton") if line.startswith("- ")]
    assert lines
    assert all(" <-> " in line and " -> " not in line for line in lines)
    path = [Step(RELATED_TO, "e:tim burton", "e:beetlejuice", 1.0, 1.0)]
    assert {} == stated(index, pairs_of(path), str)


def test_the_direction_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    turned = [Triple(one.passage_id, one.object, one.relation, one.subject, one.confidence) for one in STATED]
    plain = [Triple(one.passage_id, one.subject, one.relation, one.object, one.confidence) for one in STATED]
    both = [export(built_index(plan_of(SERVICES, triples=told), tmp_path).store) for told in (turned, plain)]

    assert both[0].counts() == both[1].counts()
    assert fingerprint(both[0]) != fingerprint(both[1])


def test_explain_and_the_report_tell_what_is_stated_on_a_path(tmp_path: Path) -> None:
    """The path goes against the stronger relation: the words do not."""
    index = services(tmp_path)
    path = [Step(RELATED_TO, "e:oauth provider", "e:auth service", 0.8, 0.8)] * 2

    assert [("e:auth service", "e:oauth provider")] == pairs_of(path)
    assert {
        ("e:auth service", "e:oauth provider"): [
            'Auth Service -> OAuth Provider: "depends_on" -- Auth delegates. (strength: 8)',
            'OAuth Provider -> Auth Service: "trusted by" -- OAuth is trusted. (strength: 4)',
        ]
    } == stated(index, pairs_of(path), Names.read(index))


def foreign(tmp_path: Path) -> Index:
    """As somebody else's graph: edges lead from subject to object, several join a pair, no statements."""
    names = {"e:auth": "Auth", "e:oauth": "OAuth", "e:user": "User"}
    tables = with_names(
        graph_tables(
            {"c1": "one", "c2": "two"},
            entities=names,
            mentions=[("e:auth", "c1"), ("e:oauth", "c2"), ("e:user", "c2")],
            related=[("e:auth", "e:oauth", 0.4), ("e:auth", "e:oauth", 0.8), ("e:oauth", "e:user", 0.5)],
        ),
        names,
    )
    related = tables.edges[RELATED_TO].assign(types=[["owned by"], ["depends_on"], []])
    turned = related.assign(source=related["target"], target=related["source"])
    return index_of(GraphTables(tables.nodes, {**tables.edges, RELATED_TO: turned}), tmp_path)


def test_a_foreign_graph_s_relations_have_the_direction_of_its_edges(tmp_path: Path) -> None:
    index = foreign(tmp_path)

    assert [
        "Related: Auth (depends_on, weight: 8), User (weight: 5), Auth (owned by, weight: 4)",
        '- OAuth -> Auth: "depends_on" (strength: 8)',
        "- User -> OAuth (strength: 5)",
        '- OAuth -> Auth: "owned by" (strength: 4)',
    ] == block(index, "e:oauth")
    worded = descriptions(Batch(index, []), Counters())
    assert {
        ("e:auth", "e:oauth"): {"OAuth depends_on Auth", "OAuth owned by Auth"},
        ("e:oauth", "e:user"): {"User OAuth"},
    } == {pair: set(said.split("; ")) for pair, said in worded.relations.items()}


def test_a_relation_that_is_stated_twice_is_printed_once_with_its_highest_strength(tmp_path: Path) -> None:
    index = foreign(tmp_path)
    asked = {"pairs": [{"id": "e:auth", "other_id": "e:oauth"}], "usual": list(RULE_RELATIONS)}
    (record,) = (one for one in index.store.read(cypher.STATED, **asked) if one["types"] == ["owned by"])
    weaker = {**record, "weight": 0.1}
    for records in ([record, weaker], [weaker, record]):
        index.store.read = lambda *_, found=records, **__: found  # type: ignore[method-assign]
        assert {("e:auth", "e:oauth"): ['OAuth -> Auth: "owned by" (strength: 4)']} == stated(
            index, [("e:auth", "e:oauth")], {"e:auth": "Auth", "e:oauth": "OAuth"}.__getitem__
        )


def test_of_parallel_edges_the_strongest_counts(tmp_path: Path) -> None:
    index = foreign(tmp_path)
    graph = adjacency(Batch(index, []), Counters())
    hits = Neighborhood(fill=False).rank(Batch(index, [Question("q", "OAuth")]), Counters())[0].hits

    # Rows e:auth, e:oauth, e:user. The sum of both edges would be 1.2.
    assert [[0, 0.8, 0], [0.8, 0, 0.5], [0, 0.5, 0]] == np.round(graph.related.toarray(), 9).tolist()
    assert {"c1": 8.0} == {hit.chunk_id: hit.components["weight"] for hit in hits if hit.chunk_id == "c1"}


@pytest.mark.neo4j
def test_statements_survive_a_copy_and_the_pasted_cypher_shows_the_direction(
    tmp_path: Path, neo4j_connection: Connection
) -> None:
    index = services(tmp_path)
    target = Neo4jStore(neo4j_connection, f"test-{secrets.token_hex(6)}")
    back = KgliteStore(tmp_path / "back", target.namespace)
    try:
        assert copy_graph(index.store, target, index.embedder) == copy_graph(target, back, index.embedder)
        pasted = {"ids": ["e:oauth provider"], "limit": 5, "min_strength": 0.0, "rel_types": []}
        for store in (index.store, target, back):
            (record,) = store.read(cypher.STRONGEST_RELATIONS, **pasted)
            assert ("e:auth service", "depends_on", "e:oauth provider") == unpacked(record["statements"][0])[0]
        other = Index(**{**vars(index), "store": target, "reads": ReadCache(), "memo": Memo(INDEX_VALUES)})
        assert block(index, "e:oauth provider") == block(other, "e:oauth provider")
    finally:
        target.drop()
        target.close()


@pytest.mark.neo4j
def test_a_mapped_graph_s_relation_may_have_its_type_as_one_text(tmp_path: Path, neo4j_connection: Connection) -> None:
    space = f"test-{secrets.token_hex(6)}"
    writer = Neo4jStore(neo4j_connection, space)
    index = foreign(tmp_path)
    relation = {"strength": ("weight", 0.1), "types": ("relation", 1.0)}
    mapping = GraphMapping({}, {"RELATED_TO": "RELATES_TO"}, {"RELATED_TO": relation}, "space", space)
    theirs = MappedStore(neo4j_connection, mapping, chunks=frozenset({"c2"}))
    try:
        writer._run(
            "CREATE (c:Chunk {space: $space, id: 'c2', content: 'two'}) "
            "CREATE (z:Entity {space: $space, id: 'z', name: 'OAuth', type: 'tool'})-[:MENTIONED_IN]->(c) "
            "CREATE (a:Entity {space: $space, id: 'a', name: 'Auth'})-[:MENTIONED_IN]->(c) "
            "CREATE (z)-[:RELATES_TO {weight: 8, relation: 'trusted by'}]->(a)",
            space=space,
        )
        mapped = Index(**{**vars(index), "store": theirs, "reads": ReadCache(), "memo": Memo(INDEX_VALUES)})
        lines = ["Related: OAuth (inverse of trusted by, weight: 8)", '- OAuth -> Auth: "trusted by" (strength: 8)']
        assert lines == block(mapped, "a")
        assert lines == block(mapped, "a", rel_types=("trusted by",))
    finally:
        writer._run("MATCH (n) WHERE n.space = $space DETACH DELETE n", space=space)
        writer.close()
        theirs.close()

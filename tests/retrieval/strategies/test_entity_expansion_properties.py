"""The entity expansion against a plain reading of document 4 on random graphs, and the order of an engine's rows."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.entity_graphs import cosines_of, index_of, neighbours_of, worlds
from tests.support.graphs import PlainGraph

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.entity_expansion import EntityExpansion
from hopbench.retrieval.types import Counters, Question


def plain_reading(
    graph: PlainGraph, seeds: Sequence[str], hops: int, minimum: float, limit: int | None
) -> list[tuple[str, int]]:
    """Document 4 without synonyms, for one question, on dictionaries: chunks with how many entities they mention."""
    related = neighbours_of(graph)
    entities = set(seeds)
    for _ in range(hops):
        entities |= {other for one in entities for other, strength in related[one].items() if strength >= minimum}
    kept = sorted(entities)[:limit]  # all names have the same cosine with the question
    counts = {chunk: sum(chunk in graph.mentions[entity] for entity in kept) for chunk in graph.chunks}
    cosines = cosines_of(graph.chunks)
    found = [(chunk, count) for chunk, count in counts.items() if count]
    return sorted(found, key=lambda pair: (-pair[1], -cosines[pair[0]], pair[0]))


@given(worlds, st.integers(1, 3), st.sampled_from([0.0, 0.5, 0.75]), st.sampled_from([None, 1, 2, 4]))
def test_it_does_what_a_plain_reading_does(
    world: tuple[PlainGraph, list[Question]], hops: int, minimum: float, limit: int | None
) -> None:
    graph, questions = world
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(graph.tables(), Path(folder), cosines_of(graph.chunks)), questions)
        strategy = EntityExpansion(
            fill=False,
            hops=hops,
            min_strength=minimum,
            use_synonyms=False,
            semantic_reranking=limit is not None,
            max_ranked=limit or 20,
        )
        for ranking in strategy.rank(batch, Counters()):
            seeds: list[str] = ranking.notes["entities"]  # type: ignore[assignment]
            found = [(hit.chunk_id, hit.components.get("entity_count")) for hit in ranking.hits]
            if seeds:
                assert found == plain_reading(graph, seeds, hops, minimum, limit)
            else:
                assert "fallback" in ranking.notes


@settings(deadline=None, max_examples=20)
@given(worlds)
def test_the_query_of_the_document_counts_the_same(world: tuple[PlainGraph, list[Question]]) -> None:
    graph, questions = world
    with tempfile.TemporaryDirectory() as folder:
        index = index_of(graph.tables(), Path(folder), cosines_of(graph.chunks))
        for ranking in EntityExpansion(fill=False).rank(Batch(index, questions), Counters()):
            if ranking.notes["entities"]:
                rows = index.store.read(cypher.ENTITY_SEARCH, entities=ranking.notes["matched_on"], top_k=100)
                counted = {hit.chunk_id: hit.components["entity_count"] for hit in ranking.hits}
                assert counted == {row["id"]: row["entity_count"] for row in rows}
                for hit in ranking.hits:
                    assert len([step for step in hit.path if step.target == hit.chunk_id]) == counted[hit.chunk_id]


@settings(deadline=None, max_examples=15)
@given(
    worlds,
    st.integers(1, 3),
    st.sampled_from(["entities", "idf", "idf_strength"]),
    st.sampled_from([0.0, 0.4]),
    st.integers(0, 99),
)
def test_the_order_of_the_engines_rows_changes_nothing(
    world: tuple[PlainGraph, list[Question]], hops: int, count: str, weight: float, seed: int
) -> None:
    graph, questions = world
    strategy = EntityExpansion(hops=hops, count=count, initial_weight=weight)
    with tempfile.TemporaryDirectory() as folder:
        indexes = [
            index_of(graph.tables(), Path(folder) / str(shuffle), cosines_of(graph.chunks), shuffle)
            for shuffle in (None, seed)
        ]
        straight, shuffled = [strategy.rank(Batch(index, questions), Counters()) for index in indexes]
        assert straight == shuffled
